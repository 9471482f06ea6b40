import { ReconcileLoop } from "../../../../../shared/async/reconcile-loop.ts";
import { CniError } from "../../../../../shared/errors.ts";
import type { Logger } from "../../../../../shared/log.ts";
import { formatIp } from "../../../../../shared/net/ip.ts";
import { type CharonError, CharonErrors, ErrorType } from "../../../../protocols/charon/mod.ts";
import { parseAddress } from "../../../../protocols/ovsdb/mod.ts";
import { controlPlaces, openControl } from "../../../../protocols/switch-control/mod.ts";
import { readSysctl, writeSysctl } from "../../../linux/node-sysctls.ts";
import type { IpsecCredentials, IpsecOptions } from "../../options.ts";
import type { PeerTunnel } from "../../peer-tunnels.ts";
import { type Agreement, readAgreements } from "./connections.ts";
import { LastingTroubles } from "./lasting-troubles.ts";
import { UserspaceConnections } from "./userspace-connections.ts";

/** How often it looks whether keys are agreed with all nodes: more often where it has to begin that itself. */
const lookMs = { kernel: 5_000, userspace: 2_000 } as const;
const monitor = "ovs-monitor-ipsec";
/**
 * For how long the kernel asks for keys no more once it has asked. strongSwan makes that 165 s at its start, in which
 * nothing would go to a node whose first answer was a refusal, as while that is told of this one.
 */
const askAgainSeconds = 10;
const askAgainPath = "/proc/sys/net/core/xfrm_acq_expires";
/** In a line of the log. */
const maxPorts = 10;

export interface IpsecNeeds extends IpsecOptions {
  /** This node's. */
  readonly nodeName: string;
  /** Beside whose socket the monitor has its own. */
  readonly database: string;
  readonly credentials: IpsecCredentials;
  /** The tunnels that there are to be, by their ports' names. */
  tunnels(): ReadonlyMap<string, PeerTunnel>;
  /** Has a packet sent into the tunnels to these, which makes the kernel ask for keys. */
  greet(tunnels: readonly PeerTunnel[]): void;
  /** To whom nothing goes for other reasons, in sentences. */
  unreached(): readonly string[];
  /** Called with what keeps other nodes' pods from being reached; the same sentence again and again while it lasts. */
  tell(trouble: string): void;
  readonly logger: Logger;
}

/**
 * Watches those who encrypt: ovs-monitor-ipsec, which tells strongSwan of the tunnels, and strongSwan's charon, which
 * agrees on keys. Whatever goes wrong with them, packets do not leave in clear: that is `ClearGuard`'s.
 */
export class Ipsec implements AsyncDisposable {
  readonly #needs: IpsecNeeds;
  readonly #errors: CharonErrors;
  readonly #loop: ReconcileLoop;
  readonly #troubles: LastingTroubles;
  /** The last error of each tunnel since there were keys, by its port's name. */
  readonly #last = new Map<string, CharonError>();
  #agreements: ReadonlyMap<string, Agreement> = new Map();
  readonly #userspace: UserspaceConnections | undefined;
  /** What strongSwan did not know at the last look. */
  #missing: ReadonlySet<string> = new Set();

  constructor(needs: IpsecNeeds) {
    this.#needs = needs;
    this.#troubles = new LastingTroubles(needs.logger, (trouble) => needs.tell(trouble));
    this.#userspace = needs.esp === "userspace" ? new UserspaceConnections(needs.nodeName) : undefined;
    this.#errors = new CharonErrors(needs.charon, (error) => this.#hear(error));
    this.#loop = new ReconcileLoop({
      what: "the keys between the nodes",
      reconcile: () => this.#look(),
      logger: needs.logger,
      everyMs: lookMs[needs.esp],
    });
    this.#loop.trigger();
  }

  /** What has to run and does not, in sentences. Asked anew each time. */
  async problems(): Promise<readonly string[]> {
    const { absence } = this.#errors;
    const { charon } = this.#needs;
    const [noMonitor] = await this.#ask("version").then(
      () => [],
      (caught: unknown) => [CniError.from(caught).message],
    );
    return [
      ...(noMonitor === undefined
        ? []
        : [`packets to other nodes' pods are not encrypted, and do not leave: ${noMonitor}`]),
      ...(absence === undefined
        ? []
        : [
            `packets to other nodes' pods are not encrypted, and do not leave: strongSwan's charon does not answer at "${charon}" (${absence}), wanted it to run with its plugin error-notify`,
          ]),
    ];
  }

  /** With whom there are no keys now, in sentences. */
  silent(): readonly string[] {
    return [...this.#needs.tunnels()].flatMap(([port, tunnel]) => this.#trouble(port, tunnel) ?? []);
  }

  /** Who encrypts goes on. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#loop[Symbol.asyncDispose]();
    await this.#errors[Symbol.asyncDispose]();
  }

  #hear(error: CharonError): void {
    // Others are no causes, such as a packet that is sent once more.
    if (!causes.has(error.type)) return;
    const port = error.connection.replace(/(?:-in|-out)?-\d+$/, "");
    const address = error.peer.replace(/\[\d+\]$/, "");
    for (const [name, { remote }] of this.#needs.tunnels())
      if (name === port || (error.connection === "" && address === formatIp(remote))) this.#remember(name, error);
  }

  /** That a certificate is not right is told twice: with its reason, and as any failure, which says less. */
  #remember(port: string, error: CharonError): void {
    const known = this.#last.get(port);
    const saysLess = error.type === ErrorType.peerAuthFailed && known !== undefined && ofCertificates.has(known.type);
    if (!saysLess) this.#last.set(port, error);
  }

  async #look(): Promise<undefined> {
    if (this.#userspace === undefined) askAgainSoon();
    const before = this.#agreements;
    try {
      this.#agreements = readAgreements(await this.#ask("ipsec/status"), this.#userspace === undefined);
    } catch {
      // `problems` says why.
      this.#agreements = new Map();
      return undefined;
    }
    const tunnels = this.#needs.tunnels();
    for (const port of this.#last.keys()) {
      const { isInstalled = false, isAsking = false } = this.#agreements.get(port) ?? {};
      // Who refuses does so at once: what is asked for longer is not answered any more.
      const isSilent = isAsking && before.get(port)?.isAsking === true;
      if (!tunnels.has(port) || isInstalled || isSilent) this.#last.delete(port);
    }
    this.#troubles.look([...this.#needs.unreached(), ...this.silent()]);
    const idle = [...tunnels].filter(([port]) => {
      const { isInstalled = false, isAsking = false } = this.#agreements.get(port) ?? {};
      return !isInstalled && !isAsking;
    });
    await this.#load(await this.#begin(idle));
    return undefined;
  }

  /** @returns ports that strongSwan knows no connection of */
  async #begin(idle: readonly (readonly [string, PeerTunnel])[]): Promise<readonly string[]> {
    if (this.#userspace !== undefined)
      return await this.#userspace.begin(new Map(idle.map(([port, { node }]) => [port, node])));
    if (idle.length > 0) this.#needs.greet(idle.map(([, tunnel]) => tunnel));
    return idle.map(([port]) => port).filter((port) => !this.#agreements.has(port));
  }

  /**
   * The monitor tells strongSwan of a connection once, and not again where that failed: it does so while strongSwan
   * starts. Telling takes keys of other nodes down too, which are agreed anew with the next packet.
   */
  async #load(missing: readonly string[]): Promise<void> {
    const lasting = missing.filter((port) => this.#missing.has(port));
    this.#missing = new Set(missing);
    if (lasting.length === 0) return;
    this.#needs.logger.warn("strongSwan does not know all tunnels: ovs-monitor-ipsec is to tell it again", {
      ports: lasting.slice(0, maxPorts),
    });
    // The next look begins anew.
    this.#missing = new Set();
    // Where it is slow, the next look shows what came of it.
    await this.#ask("refresh").catch(() => undefined);
  }

  /** A sentence that stays the same for as long as it is so; `undefined`: there are keys. */
  #trouble(port: string, { node, remote }: PeerTunnel): string | undefined {
    const agreement = this.#agreements.get(port);
    if (agreement?.isInstalled === true) return undefined;
    const error = this.#last.get(port);
    const why = causes.get(error?.type ?? 0) ?? silenceText(agreement);
    return `nothing goes to the pods of node "${node}" at ${formatIp(remote)}: ${why}`;
  }

  async #ask(command: string): Promise<string> {
    const action = "ask who has packets encrypted";
    const places = await controlPlaces(parseAddress(this.#needs.database), monitor);
    using control = await openControl(places, action, monitor);
    return await control.ask(command, [], action);
  }
}

/** Where it may not be written, keys are agreed on later. */
function askAgainSoon(): void {
  if (Number(readSysctl(askAgainPath)) <= askAgainSeconds) return;
  try {
    writeSysctl(askAgainPath, String(askAgainSeconds), "have the kernel ask for keys again soon");
  } catch (caught) {
    if (!(caught instanceof CniError)) throw caught;
  }
}

const silenceText = (agreement: Agreement | undefined): string =>
  agreement?.isAsking === true
    ? "it does not answer at UDP 500 and 4500"
    : "it agrees on no keys, and has not said why";

const ofCertificates: ReadonlySet<number> = new Set([
  ErrorType.certificateExpired,
  ErrorType.certificateRevoked,
  ErrorType.noIssuerCertificate,
]);

/** What an error means for people who look for its cause. */
const causes: ReadonlyMap<number, string> = new Map([
  [
    ErrorType.localAuthFailed,
    "it does not take what this node shows (AUTHENTICATION_FAILED): secrets or certificates differ",
  ],
  [ErrorType.peerAuthFailed, "what it shows is not right (AUTHENTICATION_FAILED): secrets or certificates differ"],
  [ErrorType.retransmitTimeout, "it does not answer at UDP 500 and 4500"],
  [ErrorType.halfOpenTimeout, "it has begun to agree on keys and does not answer any more"],
  [ErrorType.proposalMismatchIke, "it wants other algorithms (NO_PROPOSAL_CHOSEN)"],
  [
    ErrorType.proposalMismatchChild,
    "it wants other algorithms for packets, or its kernel cannot encrypt (NO_PROPOSAL_CHOSEN)",
  ],
  [ErrorType.selectorMismatch, "it wants other packets encrypted (TS_UNACCEPTABLE): another tunnel"],
  [ErrorType.installChildSaFailed, "this node's kernel does not take the keys: it has no ESP or no AES-GCM"],
  [ErrorType.installChildPolicyFailed, "this node's kernel does not take the policies of IPsec"],
  [ErrorType.authorizationFailed, "it may not be reached by this connection (AUTHORIZATION_FAILED)"],
  [ErrorType.certificateExpired, "a certificate has expired"],
  [ErrorType.certificateRevoked, "a certificate was revoked"],
  [ErrorType.noIssuerCertificate, "its certificate is of an authority that this node does not know"],
]);

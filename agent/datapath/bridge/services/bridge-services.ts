import { KeyedMutex } from "../../../../shared/async/keyed-mutex.ts";
import { nextTurn } from "../../../../shared/async/next-turn.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import {
  createTable,
  deleteChain,
  deleteTable,
  Errno,
  isErrno,
  type NetlinkSocket,
  type Table,
} from "../../../protocols/netlink/mod.ts";
import { interfaceError } from "../../linux/kernel-errors.ts";
import { frameOf, lacksRules, type Ruleset, rulesAnew } from "../../linux/rule-keeper.ts";
import { unlessMissing } from "../../linux/set-elements.ts";
import type { RefusedService, ServicePort, ServiceProxy } from "../../services.ts";
import type { PolicedBridge } from "../policies/node-chains.ts";
import { bridgeRuleset, type ServiceOptions, serviceRuleset } from "./service-chains.ts";
import { serviceSets, serviceTable } from "./service-sets.ts";
import { type ServiceChange, StandingServices } from "./standing-services.ts";

interface BridgeServicesOptions {
  /** For packet filters; it lives as long. */
  readonly socket: NetlinkSocket;
  /** Another, to read many elements by; nobody else uses it. */
  readonly reading: NetlinkSocket;
  /** Absent: others balance services. */
  readonly options?: ServiceOptions | undefined;
  /** As they are now. */
  bridges(): readonly PolicedBridge[];
  /** Called where services of UDP have changed: ends connections that lead to nobody who still answers. */
  endConnections(changes: readonly ServiceChange[]): void;
}

/** Elements of one transaction: some 200 kB, a few milliseconds in the kernel. A service is never cut. */
const maxPerStep = 2_000;

/** Calls that wait at a time: the agent makes one, and the repair another. */
const maxWaiting = 16;

/**
 * Services on kernel bridges, by nftables: what a packet is led by are elements of maps, so that a change costs the
 * elements that it changes. Connections are translated by the node, to which bridges hand what pods say to each other.
 */
export class BridgeServices implements ServiceProxy {
  readonly #table: Table;
  readonly #options: BridgeServicesOptions;
  readonly #lane = new KeyedMutex(maxWaiting);
  #wanted: ReadonlyMap<string, ServicePort> | undefined;
  /** The rules that stand, by the bridges that they name. */
  #frame: { readonly text: string; readonly rulesets: readonly Ruleset[] } | undefined;
  /** What the kernel has; absent: not known. */
  #standing: StandingServices | undefined;

  constructor(bridge: string, options: BridgeServicesOptions) {
    this.#table = serviceTable(bridge);
    this.#options = options;
  }

  apply(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]> {
    this.#wanted = wanted;
    return this.#alone("put services in force", () => this.#put(wanted, signal));
  }

  /** Puts back what somebody has deleted; an agent that balances no services takes an earlier one's back. @throws {CniError} */
  async start(): Promise<void> {
    const wanted = this.#wanted;
    if (this.#options.options === undefined)
      await this.#alone("take back services", async () => this.#takeBack(this.#options.socket));
    else if (wanted !== undefined)
      await this.#alone("put services back", () => {
        this.#forget();
        return this.#put(wanted, new AbortController().signal);
      });
  }

  differences(): Promise<readonly string[]> {
    return this.#alone("compare services", async () => [
      ...this.problems(),
      ...((await this.#standing?.differences()) ?? []),
    ]);
  }

  /** A quick look, for a check that runs often: whether packets are still led to services. @throws {NetlinkError} */
  problems(): readonly string[] {
    if (this.#wanted === undefined || this.#options.options === undefined) return [];
    const rulesets = this.#frame?.rulesets;
    const isWhole = rulesets?.every((ruleset) => !lacksRules(this.#options.socket, ruleset));
    return isWhole === true ? [] : ["the packet rules of services are not all there"];
  }

  async #put(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]> {
    try {
      return await this.#change(wanted, signal);
    } catch (caught) {
      this.#forget();
      // Somebody has deleted something of it, or added to it.
      if (![Errno.ENOENT, Errno.EBUSY, Errno.EEXIST].some((errno) => isErrno(caught, errno))) throw caught;
    }
    return await this.#change(wanted, signal);
  }

  async #change(wanted: ReadonlyMap<string, ServicePort>, signal: AbortSignal): Promise<readonly RefusedService[]> {
    const { socket, reading, options, endConnections } = this.#options;
    const isWhole = options?.proxyAll === true;
    const [own] = this.#setFrame(socket);
    const frame = new Set(own?.rules.map(({ chain }) => chain));
    this.#standing ??= await StandingServices.read(reading, this.#table, isWhole, frame);
    const standing = this.#standing;
    for (const step of standing.stepsTo(wanted, maxPerStep)) {
      for (const messages of step.transactions) socket.transact(messages);
      const changed = step.changes.filter(({ before, after }) => (after ?? before)?.protocol === "udp");
      if (changed.length > 0) endConnections(changed);
      // Pods come and go meanwhile.
      await nextTurn();
      if (signal.aborted) break;
    }
    return standing.refused();
  }

  /** Rules that are the same whatever services there are. Some name the bridges. */
  #setFrame(socket: NetlinkSocket): readonly Ruleset[] {
    const bridges = this.#options.bridges();
    const text = bridges.map(({ name, mac }) => `${name} ${mac.toHex()}`).join();
    const { options } = this.#options;
    if (this.#frame?.text === text || options === undefined) return this.#frame?.rulesets ?? [];
    const sets = ([4, 6] as const).map((family) => serviceSets(this.#table, family));
    const own = serviceRuleset(this.#table, sets, bridges, options);
    const rulesets = [own, ...bridges.map(bridgeRuleset)];
    try {
      socket.transact(rulesets.flatMap(frameOf));
    } catch (caught) {
      if (!isErrno(caught, Errno.EEXIST)) throw caught;
      // Sets of the same names from another release.
      socket.transact([createTable(this.#table), deleteTable(this.#table), ...rulesets.flatMap(frameOf)]);
      this.#standing = undefined;
    }
    socket.transact(rulesets.flatMap(rulesAnew));
    this.#frame = { text, rulesets };
    return rulesets;
  }

  #takeBack(socket: NetlinkSocket): void {
    const isGone = unlessMissing(true, () => {
      socket.transact([deleteTable(this.#table)]);
      return false;
    });
    if (isGone) return;
    for (const bridge of this.#options.bridges()) {
      const { table, hooks } = bridgeRuleset(bridge);
      for (const name of hooks.keys()) unlessMissing(undefined, () => socket.transact([deleteChain(table, name)]));
    }
  }

  #forget(): void {
    this.#frame = undefined;
    this.#standing = undefined;
  }

  async #alone<T>(action: string, work: () => Promise<T>): Promise<T> {
    try {
      return await this.#lane.run("", { what: "services" }, work);
    } catch (caught) {
      throw new CniError(CniCode.tryAgainLater, `Cannot ${action}: ${interfaceError(action, caught).message}`);
    }
  }
}

import type { Logger } from "../../../../shared/log.ts";
import { type Hcn, type HcnDocument, type HcnEndpoint, HcnError } from "../../../protocols/hcn/mod.ts";
import type { RefusedService } from "../../services.ts";
import type { EndpointListing } from "../endpoint-listing.ts";
import type { Failures } from "./failures.ts";
import { type PresentBalancer, readPresent, toDocument } from "./load-balancer.ts";
import { isOwnId, newOwnId } from "./own-ids.ts";
import { type BalancerPlan, describeSlot, planBalancers, planEndpoints, resolve, surplusEndpoints } from "./plan.ts";
import type { PresentBalancers } from "./present-balancers.ts";
import { endpointSettings, type ServiceEndpoint } from "./service-endpoint.ts";
import type { NodeView, Wanted } from "./wanted.ts";

/** As many calls in a row without an answer, and HNS itself is taken to hang: each costs its whole time, and a thread. */
const maxTimeoutsInARow = 3;

export interface BringingTools {
  readonly hcn: Hcn;
  readonly listing: EndpointListing;
  readonly balancers: PresentBalancers;
  readonly failures: Failures;
  readonly logger: Logger;
  /** What HNS can do but for this: it has answered success and changed nothing. */
  readonly modify: { works: boolean };
}

export interface Aim {
  readonly networkId: string;
  readonly view: NodeView;
  readonly wanted: Wanted;
}

/** What one run has found out. */
export interface Brought {
  readonly refused: readonly RefusedService[];
  /** HNS has answered what does not fit to what was known of it: another run is worth it, after a listing. */
  readonly surprised: boolean;
}

/**
 * Makes HNS have what is wanted, by single calls one after the other, so that pods' calls find threads free. New
 * endpoints come before the load balancers that lead to them, and old ones go after.
 */
export class Bringing {
  readonly #tools: BringingTools;
  readonly #networkId: string;
  readonly #view: NodeView;
  readonly #wanted: Wanted;
  readonly #signal: AbortSignal;
  readonly #isLast: boolean;
  readonly #refused: RefusedService[] = [];
  #surprised = false;
  #timeouts = 0;

  /** @param isLast whether no other run follows where this one is surprised */
  constructor(
    tools: BringingTools,
    { networkId, view, wanted }: Aim,
    { signal, isLast }: { readonly signal: AbortSignal; readonly isLast: boolean },
  ) {
    this.#tools = tools;
    this.#isLast = isLast;
    this.#networkId = networkId;
    this.#view = view;
    this.#wanted = wanted;
    this.#signal = signal;
  }

  /** @throws {HcnError} where HNS is away, or hangs */
  async run(): Promise<Brought> {
    const ids = await this.#bringEndpoints();
    // Without them load balancers that could stay would be taken for surplus.
    if (this.#surprised && !this.#isLast) return { refused: this.#refused, surprised: true };
    const plan = planBalancers(resolve(this.#wanted.balancers, ids), this.#tools.balancers.all());
    await this.#bringBalancers(plan);
    if (!this.#signal.aborted) await this.#sweepEndpoints(ids);
    return { refused: this.#refused, surprised: this.#surprised };
  }

  async #bringEndpoints(): Promise<ReadonlyMap<string, string>> {
    const { listing } = this.#tools;
    const plan = planEndpoints(
      this.#wanted.endpoints,
      listing.all().filter(({ networkId }) => networkId === this.#networkId),
    );
    const ids = new Map(plan.standing);
    for (const { wanted, instead } of plan.make) {
      if (this.#signal.aborted) return ids;
      const made = await this.#attempt(wanted.ip, JSON.stringify(wanted), async () => {
        for (const id of instead) await this.#deleteEndpoint(id);
        return await this.#makeEndpoint(wanted);
      });
      if (made === undefined) this.#refuseAll(wanted.ip, this.#tools.failures.reason(wanted.ip));
      else ids.set(wanted.ip, made.id);
    }
    for (const [ip, id] of plan.taken) this.#refuseAll(ip, `the endpoint ${id}, which is not ours, has the address`);
    return ids;
  }

  async #makeEndpoint(wanted: ServiceEndpoint): Promise<HcnEndpoint> {
    const { hcn, listing } = this.#tools;
    const made = await hcn.createEndpoint(this.#networkId, newOwnId(), endpointSettings(wanted));
    listing.note(made);
    return made;
  }

  /** Tells of all service ports that need an endpoint. */
  #refuseAll(ip: string, reason = "HNS has not made it"): void {
    for (const { key, remote, vip } of this.#wanted.balancers.values())
      if (remote.includes(ip) || vip === ip || this.#view.overlay?.sourceVip === ip)
        this.#refused.push({ key, reason: `endpoint ${ip}: ${reason}` });
  }

  async #bringBalancers({ inTheWay, changes, surplus, blocked }: BalancerPlan): Promise<void> {
    for (const { id } of inTheWay) await this.#remove(id);
    for (const [slot, holder] of blocked) this.#refuseBlocked(slot, holder);
    for (const { slot, text, wanted, balancer, from } of changes) {
      if (this.#signal.aborted) return;
      const done = await this.#attempt(slot, text, async () => {
        if (from !== undefined && (await this.#modify(from, toDocument(from.id, balancer), text))) return true;
        if (from !== undefined) await this.#deleteBalancer(from.id);
        await this.#create(toDocument(newOwnId(), balancer), text);
        return true;
      });
      const reason = this.#tools.failures.reason(slot);
      if (done === undefined && reason !== undefined)
        this.#refused.push({ key: wanted.key, reason: `${wanted.kind} ${describeSlot(wanted)}: ${reason}` });
    }
    for (const { id } of surplus) {
      if (this.#signal.aborted) return;
      await this.#remove(id);
    }
  }

  #refuseBlocked(slot: string, holder: string): void {
    const wanted = this.#wanted.balancers.get(slot);
    if (wanted === undefined) return;
    const is = `the load balancer ${holder}, which is not ours, has the place (kube-proxy leaves such ones)`;
    this.#refused.push({ key: wanted.key, reason: `${wanted.kind} ${describeSlot(wanted)}: ${is}` });
  }

  /** @returns whether it is so now; else it has to be replaced */
  async #modify(from: PresentBalancer, document: HcnDocument, text: string): Promise<boolean> {
    const { hcn, balancers, modify, logger } = this.#tools;
    if (!modify.works || !this.#view.features.modifyLoadBalancer) return false;
    try {
      const shown = await hcn.modifyLoadBalancer(from.id, document);
      if (shown === undefined) {
        balancers.forget(from.id);
        return false;
      }
      if (readPresent(shown).shown !== from.shown) {
        balancers.note(shown, text);
        return true;
      }
    } catch (caught) {
      if (!(caught instanceof HcnError) || caught.hresult !== notImplemented) throw caught;
    }
    modify.works = false;
    logger.warn("HNS does not change load balancers in place, so they are replaced", {
      version: this.#view.features.version,
    });
    return false;
  }

  async #create(document: HcnDocument, text: string): Promise<void> {
    const { hcn, balancers } = this.#tools;
    const made = await hcn.createLoadBalancer(document);
    if (isOwnId(made.id)) {
      balancers.note(made, text);
      return;
    }
    // Nobody could tell any more whose it is.
    await hcn.deleteLoadBalancer(made.id);
    const reason = `HNS has called it ${made.id}, wanted the identifier that it was given`;
    throw new HcnError({ action: "create a load balancer", call: "HcnCreateLoadBalancer", reason });
  }

  async #remove(id: string): Promise<void> {
    await this.#attempt(id, "", () => this.#deleteBalancer(id));
  }

  async #deleteBalancer(id: string): Promise<true> {
    const { hcn, balancers } = this.#tools;
    try {
      await hcn.deleteLoadBalancer(id);
    } catch (caught) {
      // Given up, it may go at any time: the next listing tells, and it is nobody else's doing then.
      if (!(caught instanceof HcnError) || caught.timedOut || caught.isServiceAway) {
        balancers.forget(id);
        throw caught;
      }
      // Windows Server 2019 refuses the first time.
      await hcn.deleteLoadBalancer(id);
    }
    balancers.forget(id);
    return true;
  }

  async #sweepEndpoints(ids: ReadonlyMap<string, string>): Promise<void> {
    const { listing, balancers } = this.#tools;
    const used = new Set([...ids.values(), ...balancers.all().flatMap(({ endpoints }) => endpoints)]);
    for (const { id } of surplusEndpoints(listing.all(), used, this.#view.podSubnet)) {
      if (this.#signal.aborted) return;
      await this.#attempt(id, "", () => this.#deleteEndpoint(id));
    }
  }

  async #deleteEndpoint(id: string): Promise<true> {
    await this.#tools.hcn.deleteEndpoint(id);
    this.#tools.listing.forget(id);
    return true;
  }

  /** HNS says that it has no memory where the node has no ports left. */
  #portsTaken(): string {
    const count = this.#tools.balancers.all().filter(({ isDsr }) => !isDsr).length;
    return `${count} load balancers have a block of 64 ports of the node each, and its dynamic ports may be used up`;
  }

  /** Does one thing, unless its last failure is too recent. @returns nothing where it is not done */
  async #attempt<T>(name: string, text: string, work: () => Promise<T>): Promise<T | undefined> {
    const { failures, logger } = this.#tools;
    if (failures.isPaused(name, text)) return undefined;
    try {
      const done = await work();
      failures.succeeded(name);
      this.#timeouts = 0;
      return done;
    } catch (caught) {
      if (!(caught instanceof HcnError)) throw caught;
      // Something is there, or gone, that was not known.
      const isSurprise = caught.isPresence || caught.isAbsence;
      if (isSurprise) this.#surprised = true;
      if (isSurprise && !this.#isLast) return undefined;
      const reason = caught.hresult === outOfMemory ? `${caught.message}; ${this.#portsTaken()}` : caught.message;
      failures.failed(name, text, reason);
      logger.warn("a part of the services is not in force", { what: name, error: reason });
      // It may have taken effect all the same, or still do so.
      this.#tools.balancers.distrust();
      if (caught.timedOut) this.#timeouts++;
      if (caught.isServiceAway || this.#timeouts >= maxTimeoutsInARow) throw caught;
      return undefined;
    }
  }
}

const outOfMemory = 0x8007000e;
/** E_NOTIMPL. */
const notImplemented = 0x80004001;

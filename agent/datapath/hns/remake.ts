import type { Ip } from "../../../shared/net/ip.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import type { Hcn, HcnEndpoint } from "../../protocols/hcn/mod.ts";
import type { Attached } from "../datapath.ts";
import { addressesIn } from "./documents.ts";
import type { EndpointRecord, MadeEndpoint } from "./endpoint-records.ts";
import { makeEndpoint, type WiringTools } from "./endpoint-wiring.ts";

/**
 * Endpoints that HNS has lost, as after a crash of the service, or that somebody has deleted or taken out of their
 * namespace. Their pods keep running, and no ADD comes for them.
 */
export class LostEndpoints {
  readonly #tools: WiringTools;
  /**
   * Identifiers of endpoints whose sandbox has gone with its namespace, or is being deleted: they are not created again
   * until an ADD comes.
   */
  readonly #unwatched = new Set<string>();

  constructor(tools: WiringTools) {
    this.#tools = tools;
  }

  /** By the last listing, without endpoints that an ADD has not completed. */
  all(): readonly Omit<Attached, "hostIfname">[] {
    const { listing, records } = this.#tools;
    return records.all().flatMap(([id, { owner, ownLease, made }]) => {
      if (made === undefined || this.#unwatched.has(id)) return [];
      return listing.get(id)?.namespaceId === made.namespace ? [] : [{ owner, ownLease }];
    });
  }

  /** A DEL has come, which may need several attempts: from now on the endpoint may be missing. */
  unwatch(id: string): void {
    this.#unwatched.add(id);
  }

  /**
   * An ADD has come, and its endpoint must exist from now on; or a DEL is done, and there is nothing left to remember.
   */
  watch(id: string): void {
    this.#unwatched.delete(id);
  }

  /**
   * Creates the endpoint as it was, if its namespace exists.
   * @param addresses the owner's present addresses; if they differ from the endpoint's, an ADD is creating a new one
   * @returns what was made; `undefined` where there was nothing to do
   */
  async remake(id: string, networkId: string, addresses: readonly Ip[] | undefined): Promise<HcnEndpoint | undefined> {
    const { hcn, records, logger } = this.#tools;
    const record = records.get(id);
    const made = record?.made;
    if (record === undefined || made === undefined || !isFor(made, addresses)) return undefined;
    const standing = await this.#standing(hcn, id);
    if (standing?.namespaceId === made.namespace) return undefined;
    if ((await hcn.namespace(made.namespace)) === undefined) {
      this.#unwatched.add(id);
      return undefined;
    }
    const endpoint =
      standing?.networkId === networkId ? standing : await this.#make(id, networkId, standing, record, made);
    await this.#tools.policies.cover(record.owner, endpoint);
    if (endpoint.namespaceId !== "") await hcn.detach(endpoint.namespaceId, id);
    await hcn.attach(made.namespace, id);
    const whole = { ...endpoint, namespaceId: made.namespace };
    this.#tools.listing.note(whole);
    const { goneSinceMs: _, ...wanted } = record;
    records.put(id, wanted);
    logger.warn("an endpoint was lost and has been made again", { id, ...record.owner });
    return whole;
  }

  async #standing(hcn: Hcn, id: string): Promise<HcnEndpoint | undefined> {
    const standing = await hcn.endpoint(id);
    if (standing === undefined) this.#tools.listing.forget(id);
    else this.#tools.listing.note(standing);
    return standing;
  }

  async #make(
    id: string,
    networkId: string,
    standing: HcnEndpoint | undefined,
    { owner, ownLease }: EndpointRecord,
    { document }: MadeEndpoint,
  ): Promise<HcnEndpoint> {
    // The endpoint was left in a network that has gone.
    if (standing !== undefined) await this.#tools.hcn.deleteEndpoint(id);
    const settings = { ...document, HostComputeNetwork: networkId };
    return makeEndpoint(this.#tools, id, {
      owner,
      ownLease,
      networkId,
      document: settings,
      addresses: addressesIn(document),
    });
  }
}

const isFor = ({ document }: MadeEndpoint, addresses: readonly Ip[] | undefined): boolean =>
  addresses === undefined || addresses.map(formatIp).join() === addressesIn(document).join();

import type { Owner } from "../../../shared/cni/types.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatIp } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { type Hcn, type HcnDocument, type HcnEndpoint, HcnError } from "../../protocols/hcn/mod.ts";
import type { Container } from "../datapath.ts";
import { type EndpointPlan, endpointDocument } from "./documents.ts";
import type { EndpointListing } from "./endpoint-listing.ts";
import type { EndpointRecords } from "./endpoint-records.ts";
import { endpointId } from "./endpoint-records.ts";

export interface WiringTools {
  readonly hcn: Hcn;
  readonly listing: EndpointListing;
  readonly records: EndpointRecords;
  readonly logger: Logger;
}

/** Whose endpoint, in which HNS network, and what it shall be. */
export interface Wanted {
  readonly owner: Owner;
  readonly ownLease: boolean;
  readonly networkId: string;
  readonly plan: EndpointPlan;
  /** A workload container joins what its sandbox has, and asks for nothing of its own. */
  readonly joins: boolean;
}

/** An endpoint that is to be made. */
export interface Making {
  readonly owner: Owner;
  readonly ownLease: boolean;
  readonly networkId: string;
  readonly document: HcnDocument;
  readonly addresses: readonly string[];
}

/** The network that an endpoint was to be in is not there any more. */
export class NetworkGone extends Error {
  override readonly name = "NetworkGone";

  constructor(cause: HcnError) {
    super(cause.message, { cause });
  }
}

/**
 * The owner's endpoint as it stands, or made now. One with other addresses, or left in a network that is gone, is
 * replaced: IPAM has given its addresses away since.
 */
export async function findOrMake(tools: WiringTools, wanted: Wanted): Promise<HcnEndpoint> {
  const { hcn, records } = tools;
  const id = endpointId(wanted.owner);
  const standing = await hcn.endpoint(id);
  const { owner, ownLease, networkId, plan, joins } = wanted;
  const { unsure, made } = records.get(id) ?? {};
  const known = { ...(unsure === true ? { unsure } : {}), ...(made === undefined ? {} : { made }) };
  const addresses = plan.ipam.ips.map(({ address }) => formatIp(address.ip));
  if (standing !== undefined && fits(standing, networkId, addresses)) {
    records.put(id, { owner, ownLease, ...known });
    return standing;
  }
  if (standing !== undefined) await remove(tools, owner, standing);
  requireNameFree(tools, id, plan.name);
  // Before the call: whatever becomes of it, its endpoint can be told to be ours.
  records.put(id, { owner, ownLease, ...known });
  // Lost since: as its sandbox had it, whose ports and policies no workload container knows.
  const before = joins && made !== undefined ? { ...made.document, HostComputeNetwork: networkId } : undefined;
  const document = before ?? endpointDocument(networkId, plan);
  return makeEndpoint(tools, id, { owner, ownLease, networkId, document, addresses });
}

function fits(endpoint: HcnEndpoint, networkId: string, addresses: readonly string[]): boolean {
  const has = endpoint.addresses.map(({ address }) => address);
  return endpoint.networkId === networkId && addresses.every((address) => has.includes(address));
}

/** HNS takes two endpoints of one name; whoever looks for it by its name would get the other. */
function requireNameFree({ listing }: WiringTools, id: string, name: string): void {
  const holder = listing.all().find((endpoint) => endpoint.name === name && endpoint.id !== id);
  if (holder === undefined) return;
  throw new CniError(
    CniCode.interfaceFailure,
    `Cannot make the endpoint "${name}": HNS has one of that name that is not ours, with the id ${holder.id}, wanted the name free`,
  );
}

/**
 * @throws {NetworkGone} where its network has gone
 * @throws {CniError} 11 where an earlier attempt comes true with other addresses
 */
export async function makeEndpoint(tools: WiringTools, id: string, making: Making): Promise<HcnEndpoint> {
  const { hcn, listing, records } = tools;
  const { owner, ownLease, networkId, document, addresses } = making;
  try {
    const made = await hcn.createEndpoint(networkId, id, document);
    listing.note(made);
    return made;
  } catch (caught) {
    if (caught instanceof HcnError && caught.timedOut)
      records.put(id, { ...records.get(id), owner, ownLease, unsure: true });
    // An attempt that was given up may have come true between the look and now.
    const late = caught instanceof HcnError && caught.isPresence ? await hcn.endpoint(id) : undefined;
    if (caught instanceof HcnError && caught.isAbsence) throw new NetworkGone(caught);
    if (late === undefined) throw caught;
    listing.note(late);
    if (fits(late, networkId, addresses)) return late;
    throw new CniError(
      CniCode.tryAgainLater,
      `Cannot make the endpoint "${late.name}": one of an earlier attempt has come with other addresses, wanted it gone first`,
      { cause: caught },
    );
  }
}

/** Has the container share the endpoint: in its HCN namespace, or, where the runtime makes none, by its id. */
export async function join(tools: WiringTools, endpoint: HcnEndpoint, { id, kind }: Container): Promise<void> {
  const { hcn, listing, records } = tools;
  const named = kind.t === "sandbox" ? kind.namespace : undefined;
  // In its sandbox's namespace the endpoint is the workload's, too.
  const namespace = named ?? (endpoint.namespaceId || records.get(endpoint.id)?.made?.namespace);
  if (namespace !== undefined && namespace !== "") {
    // The sandbox was made anew under the same id.
    if (endpoint.namespaceId !== "" && endpoint.namespaceId !== namespace)
      await hcn.detach(endpoint.namespaceId, endpoint.id);
    if (endpoint.namespaceId !== namespace) await enter(hcn, namespace, endpoint);
    listing.note({ ...endpoint, namespaceId: namespace });
    return;
  }
  await joinById(hcn, endpoint.id, id);
}

async function enter(hcn: Hcn, namespace: string, endpoint: HcnEndpoint): Promise<void> {
  try {
    await hcn.attach(namespace, endpoint.id);
  } catch (caught) {
    const isGone = caught instanceof HcnError && caught.isAbsence && (await hcn.namespace(namespace)) === undefined;
    if (!isGone) throw caught;
    throw new CniError(
      CniCode.invalidEnvironment,
      `Cannot enter the sandbox: HNS has no namespace "${namespace}", wanted the one that CNI_NETNS names`,
      { cause: caught },
    );
  }
}

/** As runtimes had it before there were namespaces, through V1. */
async function joinById(hcn: Hcn, endpointId: string, containerId: string): Promise<void> {
  const endpoint = await hcn.hnsCall("GET", `/endpoints/${endpointId}`);
  if (sharersOf(endpoint).includes(containerId)) return;
  const body = { ContainerId: containerId, SystemType: "Container", CompartmentId: 0, VirtualNicName: "" };
  try {
    await hcn.hnsCall("POST", `/endpoints/${endpointId}/attach`, body);
  } catch (caught) {
    if (!(caught instanceof HcnError) || caught.hresult !== alreadyAttached) throw caught;
  }
}

/** HCN_E_ENDPOINT_ALREADY_ATTACHED. */
const alreadyAttached = 0x803b0014;

function sharersOf(endpoint: unknown): readonly unknown[] {
  if (typeof endpoint !== "object" || endpoint === null || !("SharedContainers" in endpoint)) return [];
  return Array.isArray(endpoint.SharedContainers) ? endpoint.SharedContainers : [];
}

/**
 * Takes the owner's endpoint away, if there is one, and looks that it is gone: only then may its address be given to
 * another. The record stays where a creation was given up and may still come true.
 * @param standing as it was seen just now
 */
export async function remove(tools: WiringTools, owner: Owner, standing: HcnEndpoint | undefined): Promise<void> {
  const { hcn, listing, records, logger } = tools;
  const id = endpointId(owner);
  if (standing !== undefined) {
    if (standing.namespaceId !== "") await leaveNamespace(tools, standing);
    await hcn.deleteEndpoint(id);
    const left = await hcn.endpoint(id);
    if (left !== undefined) {
      logger.warn("HNS lists an endpoint that it has deleted", { id, name: left.name });
      throw new CniError(
        CniCode.tryAgainLater,
        `Cannot take the endpoint "${left.name}" away: HNS lists it still, wanted it gone`,
      );
    }
  }
  listing.forget(id);
  const record = records.get(id);
  if (record?.unsure !== true) {
    records.remove(id);
    return;
  }
  // What its owner has given up is not to be made again.
  const { made: _, ...rest } = record;
  records.put(id, { ...rest, goneSinceMs: record.goneSinceMs ?? Date.now() });
}

/** The deletion ends the attachment as well, so that only an unanswered call counts. */
async function leaveNamespace({ hcn, logger }: WiringTools, endpoint: HcnEndpoint): Promise<void> {
  try {
    await hcn.detach(endpoint.namespaceId, endpoint.id);
  } catch (caught) {
    if (caught instanceof HcnError && (caught.timedOut || caught.isServiceAway)) throw caught;
    logger.warn("an endpoint could not leave its namespace before its deletion", {
      id: endpoint.id,
      namespace: endpoint.namespaceId,
      error: reasonOf(caught),
    });
  }
}

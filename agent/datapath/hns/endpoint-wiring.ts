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
import type { HnsPolicies } from "./policies/hns-policies.ts";

export interface WiringTools {
  readonly hcn: Hcn;
  readonly listing: EndpointListing;
  readonly records: EndpointRecords;
  readonly logger: Logger;
  /** Of the network policies. */
  readonly policies: Pick<HnsPolicies, "closed" | "cover">;
}

/** The owner, the HNS network and the plan of an endpoint. */
export interface Wanted {
  readonly owner: Owner;
  readonly ownLease: boolean;
  readonly networkId: string;
  readonly plan: EndpointPlan;
  /** A workload container only joins its sandbox's endpoint. */
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

/** The HNS network of an endpoint no longer exists. */
export class NetworkGone extends Error {
  override readonly name = "NetworkGone";

  constructor(cause: HcnError) {
    super(cause.message, { cause });
  }
}

/**
 * The owner's endpoint, existing or created now. One with other addresses, or in a network that has gone, is replaced,
 * because IPAM has given it other addresses since.
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
  // Recorded before the call, because HNS may carry it out after this agent was killed, and HNS does not know the
  // owner.
  records.put(id, { owner, ownLease, ...known });
  // A lost endpoint is created as it was for its sandbox, because a workload container's request does not have its
  // ports and policies.
  const before = joins && made !== undefined ? { ...made.document, HostComputeNetwork: networkId } : undefined;
  const document = before ?? endpointDocument(networkId, plan);
  return makeEndpoint(tools, id, { owner, ownLease, networkId, document, addresses });
}

function fits(endpoint: HcnEndpoint, networkId: string, addresses: readonly string[]): boolean {
  const has = endpoint.addresses.map(({ address }) => address);
  return endpoint.networkId === networkId && addresses.every((address) => has.includes(address));
}

/** HNS allows two endpoints of one name; a look-up by name would find the wrong one. */
function requireNameFree({ listing }: WiringTools, id: string, name: string): void {
  const holder = listing.all().find((endpoint) => endpoint.name === name && endpoint.id !== id);
  if (holder === undefined) return;
  throw new CniError(
    CniCode.interfaceFailure,
    `Cannot make the endpoint "${name}": HNS has one of that name that is not ours, with the id ${holder.id}`,
  );
}

/**
 * @throws {NetworkGone} where its network has gone
 * @throws {CniError} 11 where an earlier attempt has created it late with other addresses
 */
export async function makeEndpoint(tools: WiringTools, id: string, making: Making): Promise<HcnEndpoint> {
  const { hcn, listing, records, policies } = tools;
  const { owner, ownLease, networkId, document, addresses } = making;
  try {
    const made = await hcn.createEndpoint(networkId, id, policies.closed(owner, document));
    listing.note(made);
    return made;
  } catch (caught) {
    if (caught instanceof HcnError && caught.timedOut)
      records.put(id, { ...records.get(id), owner, ownLease, unsure: true });
    // An earlier attempt that timed out may have created it meanwhile.
    const late = caught instanceof HcnError && caught.isPresence ? await hcn.endpoint(id) : undefined;
    if (caught instanceof HcnError && caught.isAbsence) throw new NetworkGone(caught);
    if (late === undefined) throw caught;
    listing.note(late);
    if (fits(late, networkId, addresses)) return late;
    throw new CniError(
      CniCode.tryAgainLater,
      `Cannot make the endpoint "${late.name}": one of an earlier attempt has come with other addresses`,
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
 * Deletes the owner's endpoint, if there is one, and verifies it: only then may its address be given to another pod.
 * The record stays if a creation timed out and may still be carried out.
 * @param standing the endpoint as just read
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
      throw new CniError(CniCode.tryAgainLater, `Cannot take the endpoint "${left.name}" away: HNS lists it still`);
    }
  }
  listing.forget(id);
  const record = records.get(id);
  if (record?.unsure !== true) {
    records.remove(id);
    return;
  }
  // An endpoint that its owner has given up must not be created again.
  const { made: _, ...rest } = record;
  records.put(id, { ...rest, goneSinceMs: record.goneSinceMs ?? Date.now() });
}

/** The deletion ends the attachment too, so only a call without an answer is an error. */
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

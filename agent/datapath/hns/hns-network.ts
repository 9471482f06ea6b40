import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Logger } from "../../../shared/log.ts";
import { formatCidr } from "../../../shared/net/ip.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import { type Hcn, HcnError, type HcnNetwork } from "../../protocols/hcn/mod.ts";
import { switchedNetwork, transparentNetwork } from "./documents.ts";
import type { HnsNetwork, NodeAdapter, NodeSide } from "./options.ts";

interface Tools {
  readonly hcn: Hcn;
  readonly node: NodeSide;
  readonly logger: Logger;
}

/**
 * Finds the HNS network by its name, or makes it on the adapter that holds the node's address, and has the node set up
 * around it. A new network that could not be completed is deleted again, because it has taken the node's address.
 * @returns its identifier
 * @throws {CniError} 102 where one of this name has another type or subnet; else as HNS or the node's side do
 */
export async function ensureNetwork(tools: Tools, network: HnsNetwork): Promise<string> {
  const standing = await findNetwork(tools.hcn, network);
  if (standing !== undefined) {
    await tools.node.setUp(network);
    return standing.id;
  }
  const made = await makeNetwork(tools, network);
  tools.logger.info("made the HNS network", { network: network.name, hns: network.hns.network, id: made.id });
  try {
    await tools.node.setUp(network);
    return made.id;
  } catch (caught) {
    tools.logger.error("the node could not be set up around the new HNS network, which is deleted again", {
      network: network.name,
      error: reasonOf(caught),
    });
    await tools.hcn.deleteNetwork(made.id);
    await tools.node.handBack(network);
    throw caught;
  }
}

/** The HNS network of this name. @throws {CniError} 102 where it is another one than the configuration says */
export async function findNetwork(hcn: Hcn, network: HnsNetwork): Promise<HcnNetwork | undefined> {
  const { hns } = network;
  const found = (await hcn.networks()).find(({ name }) => name === hns.network);
  if (found === undefined) return undefined;
  const wanted = formatCidr(network.subnet);
  const subnets = prefixesOf(found);
  const differs = (what: string, is: string, instead: string): CniError =>
    new CniError(
      CniCode.interfaceFailure,
      `Cannot use the HNS network "${hns.network}": its ${what} is "${is}", wanted "${instead}", or the network deleted`,
    );
  if (found.type !== "" && found.type.toLowerCase() !== hns.type.toLowerCase())
    throw differs("type", found.type, hns.type);
  if (subnets.length > 0 && !subnets.includes(wanted)) throw differs("subnet", subnets.join(", "), wanted);
  return found;
}

/** What was made through V1 may be shown with V1's own key. */
function prefixesOf({ subnets, document }: HcnNetwork): readonly string[] {
  if (subnets.length > 0) return subnets.map(({ prefix }) => prefix);
  const listed = document["Subnets"];
  return (Array.isArray(listed) ? listed : []).flatMap((each) =>
    isObject(each) && typeof each["AddressPrefix"] === "string" ? [each["AddressPrefix"]] : [],
  );
}

async function makeNetwork({ hcn, node }: Tools, network: HnsNetwork): Promise<HcnNetwork> {
  const adapter = await node.prepare(network);
  try {
    await create(hcn, network, adapter);
  } catch (caught) {
    // An earlier attempt that timed out has created it meanwhile.
    if (!(caught instanceof HcnError && caught.isPresence)) throw caught;
  }
  const made = await findNetwork(hcn, network);
  if (made !== undefined) return made;
  throw new CniError(
    CniCode.tryAgainLater,
    `Cannot make the HNS network "${network.hns.network}": HNS does not list it yet`,
  );
}

async function create(hcn: Hcn, network: HnsNetwork, adapter: NodeAdapter): Promise<void> {
  if (network.hns.type === "Transparent") {
    await hcn.hnsCall("POST", "/networks/", transparentNetwork(network, adapter));
    return;
  }
  const made = await hcn.createNetwork(switchedNetwork(network, adapter));
  if (network.hns.type !== "Overlay") return;
  // Without it the node itself does not reach the pods.
  const Settings = { Policies: [{ Type: "HostRoute", Settings: {} }] };
  await hcn.modifyNetwork(made.id, { ResourceType: "Policy", RequestType: "Add", Settings });
}

import { type Frame, type Hex, type Icmp, type Ip, icmpOf, innerFrame, portsOf } from "./parse.ts";
import type { Rule } from "./rules.ts";
import { isWithin, type Place, type Pod, type World, type WorldNode } from "./world.ts";

/**
 * The rules as one function, written from the documents by somebody who has not read the flows: whether a frame that
 * the attacker sent may have arrived at a place as it did there.
 * @returns the rule that it breaks; `undefined` where it may
 */
export function brokenRule(world: World, sent: Frame, place: Place, arrived: Frame): Rule | undefined {
  const broken = brokenByItself(world, sent);
  // A bridge's own interface stands before the packet rules that drop these.
  const isBeforeRules = broken === "loopback" && world.dataPath === "bridge" && place.role === "gateway";
  if (broken !== undefined) return isBeforeRules ? undefined : broken;
  if (place.role === "pod") return atPod(world, sent, podOf(world, place), arrived);
  if (place.node === world.nodes[0].name) return atOwnNode(world, sent, place, arrived);
  return atOtherNode(world, sent, place, arrived);
}

const ipv4 = 0x0800;
const arpType = 0x0806;
const ipv6 = 0x86dd;
const unspecified = "0".repeat(32);
const routerSolicitation = 133;
const routerAdvertisement = 134;
const solicitation = 135;
const advertisement = 136;
const redirect6 = 137;
const redirect4 = 5;
/** Of MLD, whose reports may come from nowhere. */
const groupMessages = [131, 132, 143];

/** What no pod may send, wherever it would arrive. */
export function brokenByItself(world: World, sent: Frame): Rule | undefined {
  const [own] = world.pods;
  if (sent.tags > 0) return "untagged";
  if (sent.source !== own.mac) return "ownMac";
  if (sent.type === arpType) return arpRule(own, sent);
  if (sent.type !== ipv4 && sent.type !== ipv6) return "etherType";
  const { ip } = sent;
  if (ip === undefined) return "malformed";
  const icmp = icmpOf(ip);
  return icmpRule(own, ip, icmp) ?? sourceRule(own, ip, icmp) ?? payloadRule(ip);
}

function arpRule(own: Pod, { arp }: Frame): Rule | undefined {
  if (arp === undefined) return "malformed";
  const isAboutItself = arp.usual && arp.senderMac === own.mac && own.addresses.includes(arp.sender);
  return isAboutItself ? undefined : "arpAboutItself";
}

function icmpRule(own: Pod, ip: Ip, icmp: Icmp | undefined): Rule | undefined {
  if (icmp === undefined) return undefined;
  if (ip.family === 4) return icmp.type === redirect4 ? "redirect" : undefined;
  if (icmp.type === routerAdvertisement) return "router";
  if (icmp.type === redirect6) return "redirect";
  if (icmp.type !== solicitation && icmp.type !== advertisement) return undefined;
  // Asking is about whom it comes from, except for an address that is only tried out.
  const about = icmp.type === solicitation && ip.source !== unspecified ? ip.source : icmp.target;
  const isAboutItself = about !== undefined && isOwn(own, about) && icmp.macs.every((mac) => mac === own.mac);
  return isAboutItself ? undefined : "neighbourAboutItself";
}

function sourceRule(own: Pod, ip: Ip, icmp: Icmp | undefined): Rule | undefined {
  if (isOwn(own, ip.source)) return undefined;
  const fromNowhere = [routerSolicitation, solicitation, ...groupMessages];
  const mayBe = ip.source === unspecified && icmp !== undefined && fromNowhere.includes(icmp.type);
  return mayBe ? undefined : "ownAddress";
}

function payloadRule(ip: Ip): Rule | undefined {
  const ports = ip.protocol === 17 ? portsOf(ip) : undefined;
  if (ip.family === 4 && ports?.from === 67 && ports.to === 68) return "dhcp";
  if (ip.family === 6 && ports?.from === 547 && ports.to === 546) return "dhcp";
  const { destination } = ip;
  const isLoopback = ip.family === 4 ? destination.startsWith("7f") : destination === `${"0".repeat(31)}1`;
  return isLoopback ? "loopback" : undefined;
}

const isOwn = (own: Pod, address: Hex): boolean => own.addresses.includes(address) || own.linkLocal === address;
const isGroup = (mac: Hex): boolean => (Number.parseInt(mac.slice(0, 2), 16) & 1) === 1;
const isMulticast = (address: Hex): boolean => address.startsWith(address.length === 8 ? "e" : "ff");
const isLinkLocal = (address: Hex): boolean => address.length === 32 && /^fe[89ab]/.test(address);
/** To all of the attacker's link: both of IPv4's kinds, and groups. */
function isForMany({ nodes: [node], mode }: World, address: Hex): boolean {
  if (isMulticast(address) || address === "ffffffff") return true;
  const isLast = address.length === 8 && address.endsWith("ff") && mode !== "networkPolicyOnly";
  return isLast && node.subnets.some((subnet) => isWithin(address, subnet));
}

function podOf(world: World, place: Place): Pod {
  const pod = world.pods.find(({ name, node }) => name === place.pod && node === place.node);
  if (pod === undefined) throw new Error(`Nobody knows the pod "${place.pod}" on "${place.node}"`);
  return pod;
}

const isNeighbourTalk = (frame: Frame): boolean => {
  if (frame.type === arpType) return true;
  const type = frame.ip?.family === 6 ? icmpOf(frame.ip)?.type : undefined;
  return type !== undefined && type >= routerSolicitation && type <= redirect6;
};

function atPod(world: World, sent: Frame, pod: Pod, arrived: Frame): Rule | undefined {
  const [own] = world.pods;
  const isNear = pod.node === own.node;
  if (world.projectsApart && pod.project !== own.project) return "projects";
  if (isNeighbourTalk(sent)) return world.dataPath === "bridge" && isNear ? undefined : "answered";
  const { ip } = sent;
  if (ip === undefined) return "malformed";
  if (isGroup(arrived.destination)) return world.dataPath === "bridge" && isNear ? undefined : "flooded";
  if (arrived.destination !== pod.mac) return "flooded";
  // What is for many may be sent to one of them.
  if (isForMany(world, ip.destination)) return isNear ? undefined : "flooded";
  if (!isNear && isLinkLocal(ip.destination)) return "link";
  const serves = isServedBy(world, ip, arrived.ip);
  if (serves && pod.addresses.includes(arrived.ip?.destination ?? "")) return undefined;
  if ([...pod.addresses, pod.linkLocal].includes(ip.destination)) return keptAddresses(sent, arrived);
  // A link goes by MACs.
  if (world.dataPath === "bridge") return undefined;
  const isBeyond = !isLinkLocal(ip.destination) && subnetOwner(world, ip.destination) !== world.nodes[0];
  return isBeyond ? "link" : "addressed";
}

/** Whether a packet for a service goes where that leads. */
const isServedBy = ({ services }: World, sent: Ip, arrived: Ip | undefined): boolean =>
  services.some(({ address, endpoint }) => address === sent.destination && endpoint.address === arrived?.destination);

/** Between pods nothing else is translated. */
const keptAddresses = (sent: Frame, arrived: Frame): Rule | undefined =>
  arrived.ip?.source !== sent.ip?.source
    ? "ownAddress"
    : arrived.ip?.destination !== sent.ip?.destination
      ? "addressed"
      : undefined;

function atOwnNode(world: World, sent: Frame, place: Place, arrived: Frame): Rule | undefined {
  const [node] = world.nodes;
  if (place.role === "gateway") return atOwnGateway(world, node, sent, arrived);
  return place.role === "wire" ? onWire(world, node, sent, arrived) : "strange";
}

function atOwnGateway(world: World, node: WorldNode, sent: Frame, arrived: Frame): Rule | undefined {
  const { gateway } = node;
  if (isNeighbourTalk(sent)) return undefined;
  const { ip } = sent;
  if (ip === undefined) return "malformed";
  if (looksLikeTunnel(world, ip) || looksLikeTunnel(world, arrived.ip)) return "tunnel";
  if (isForMany(world, ip.destination)) return undefined;
  if (world.dataPath === "bridge" && isGroup(arrived.destination)) return undefined;
  if (arrived.destination !== gateway.mac) return "link";
  // There it is another plugin that knows which addresses are whose, and here packet rules drop what nobody has.
  if (world.mode === "networkPolicyOnly" || world.dataPath === "bridge") return undefined;
  if (isLinkLocal(ip.destination)) return ip.destination === gateway.linkLocal ? undefined : "absent";
  const isLocal = node.subnets.some((subnet) => isWithin(ip.destination, subnet));
  if (!isLocal || gateway.addresses.includes(ip.destination)) return undefined;
  const isPod = world.pods.some(({ addresses }) => addresses.includes(ip.destination));
  // Elsewhere the switch, or the bridge, takes it to that pod itself; to the gateway's MAC it may go all the same.
  return isPod ? undefined : "absent";
}

/** Of fragments also what they became when somebody put them together. */
function looksLikeTunnel({ tunnel }: World, ip: Ip | undefined): boolean {
  if (ip === undefined) return false;
  const ports = portsOf(ip);
  const isUdp = ip.protocol === 17;
  if (tunnel === "geneve") return isUdp && ports?.to === 6081;
  if (tunnel === "vxlan") return isUdp && ports?.to === 4789;
  if (tunnel === "stt") return ip.protocol === 6 && ports?.to === 7471;
  return tunnel === "gre" && ip.protocol === 47;
}

const subnetOwner = (world: World, address: Hex): WorldNode | undefined =>
  world.nodes.find(({ subnets }) => subnets.some((subnet) => isWithin(address, subnet)));

/**
 * What the attacker's node sends to the nodes' network. Which MAC it was sent to says nothing: a switch may take to the
 * gateway whatever goes beyond the link.
 */
function onWire(world: World, node: WorldNode, sent: Frame, arrived: Frame): Rule | undefined {
  const { ip } = sent;
  const out = arrived.ip;
  if (arrived.tags > 0) return "untagged";
  if (ip === undefined || out === undefined || isNeighbourTalk(sent)) return "answered";
  if (isForMany(world, ip.destination) || isLinkLocal(ip.destination)) return "flooded";
  if (arrived.source !== node.mac) return "ownMac";
  const owner = subnetOwner(world, ip.destination);
  if (owner === node && world.mode !== "networkPolicyOnly") return "absent";
  if (isServedBy(world, ip, out)) return plainOnWire(world, node, ip, out, subnetOwner(world, out.destination));
  if (out.destination !== ip.destination) return inTunnel(world, node, sent, out);
  return node.addresses.includes(ip.destination) ? "strange" : plainOnWire(world, node, ip, out, owner);
}

/** As an IP packet of its own. @param owner of the subnet that it goes to */
function plainOnWire(world: World, node: WorldNode, ip: Ip, out: Ip, owner: WorldNode | undefined): Rule | undefined {
  const { mode } = world;
  if (owner === undefined && [ip, out].some((packet) => looksLikeTunnel(world, packet))) return "tunnel";
  if (owner !== undefined && (mode === "encap" || (mode === "hybrid" && !owner.onSameLink))) return "source";
  const keeps =
    mode === "networkPolicyOnly" ||
    owner !== undefined ||
    world.clusterNetworks.some((network) => isWithin(out.destination, network));
  return node.addresses.includes(out.source) || (keeps && isOwn(world.pods[0], out.source)) ? undefined : "source";
}

/** From node to node, with the packet in it as it was sent, or as a service made it. */
function inTunnel(world: World, node: WorldNode, sent: Frame, out: Ip): Rule | undefined {
  if (!looksLikeTunnel(world, out) || sent.ip === undefined) return "strange";
  const inner = innerFrame(out);
  const to =
    inner?.ip !== undefined && isServedBy(world, sent.ip, inner.ip) ? inner.ip.destination : sent.ip.destination;
  const owner = subnetOwner(world, to);
  const isEnds = node.addresses.includes(out.source) && owner?.addresses.includes(out.destination) === true;
  const hasTunnel = world.mode === "encap" || (world.mode === "hybrid" && owner?.onSameLink === false);
  if (!isEnds || !hasTunnel) return "tunnel";
  return inner?.ip?.source === sent.ip.source && inner.ip.destination === to ? undefined : "tunnel";
}

function atOtherNode(world: World, sent: Frame, place: Place, arrived: Frame): Rule | undefined {
  const node = world.nodes.find(({ name }) => name === place.node);
  const { ip } = sent;
  const out = arrived.ip;
  if (node === undefined || ip === undefined || out === undefined || place.role === "wire") return "strange";
  if (isNeighbourTalk(sent)) return "answered";
  if (out.destination !== ip.destination && !isServedBy(world, ip, out)) return "strange";
  const fromPod = isOwn(world.pods[0], out.source);
  const isForPods = node.subnets.some((subnet) => isWithin(out.destination, subnet));
  if (place.role === "gateway") {
    if (fromPod && node.gateway.addresses.includes(out.destination)) return undefined;
    return isForPods ? "absent" : "addressed";
  }
  const fromNode = world.nodes[0].addresses.includes(out.source);
  if (node.addresses.includes(out.destination)) {
    if ([ip, out].some((packet) => looksLikeTunnel(world, packet))) return "tunnel";
    return fromNode || world.mode === "networkPolicyOnly" ? undefined : "source";
  }
  // Without a tunnel the other node's kernel takes packets for its pods.
  return world.mode !== "encap" && isForPods && (fromPod || fromNode) ? undefined : "addressed";
}

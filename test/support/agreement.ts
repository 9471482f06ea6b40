import { execa } from "execa";
import { parseAlias } from "../../agent/datapath/veth/alias.ts";
import type { AgentHome } from "./agent-process.ts";
import type { PrivateNode } from "./private-node.ts";

/** One attachment, as the runtime has it. */
export interface RuntimePod {
  readonly network: string;
  readonly containerId: string;
  readonly ifname: string;
  readonly addresses: readonly string[];
  /** A path of the node's. */
  readonly netns: string;
}

/** What every source says of one attachment: addresses without prefix, sorted; `undefined` where it knows nothing of it. */
type Claims = Map<string, string>;

export interface AgreementOptions {
  readonly node: PrivateNode;
  readonly home: AgentHome;
  readonly executables: string;
  /** Interfaces of the node that are nobody's pod. */
  readonly fixedLinks: readonly string[];
  /** Names in /run/netns that are nobody's pod. */
  readonly fixedNamespaces: readonly string[];
  /** Sweeping goes on after the answer; whatever still disagrees after this long is a fault. Default: ten seconds. */
  readonly withinMs?: number;
}

interface Link {
  readonly ifname: string;
  readonly ifalias?: string;
}

interface LeaseRow {
  readonly network: string;
  readonly address: string;
  readonly state: string;
  readonly containerId: string;
  readonly ifname: string;
}

/**
 * Leases, kernel interfaces, namespaces, port rules and the runtime's own list: all say the same, at the latest
 * after a moment.
 * @throws with a table of who says what
 */
export async function expectAgreement(
  options: AgreementOptions,
  runtimePods: () => Promise<readonly RuntimePod[]>,
): Promise<void> {
  const until = performance.now() + (options.withinMs ?? 10_000);
  for (;;) {
    const found = await disagreements(options, await runtimePods());
    if (found.length === 0) return;
    if (performance.now() > until) throw new Error(`The node is not of one mind:\n${found.join("\n")}`);
    await Bun.sleep(50);
  }
}

async function disagreements(options: AgreementOptions, pods: readonly RuntimePod[]): Promise<string[]> {
  const { node, home } = options;
  const leases = await leasesOf(options);
  const links: Link[] = JSON.parse(await node.run("ip -j link"));
  const status = await home.status().catch((error: Error) => error);
  const namespaces = (await node.run("ls /run/netns")).split("\n").filter((name) => name !== "");
  const natRules = await node.run("iptables-save -t nat");

  const runtime: Claims = new Map(pods.map((pod) => [keyOf(pod), addressText(pod.addresses)]));
  const found = compare({
    lease: claimedByLeases(leases),
    "host interface": claimedByLinks(links),
    "pod interface": await claimedInPods(node, pods),
    runtime,
  });
  for (const { state, address, containerId } of leases)
    if (state === "releasing") found.push(`lease ${address} of ${containerId.slice(0, 12)} is still "releasing"`);
  if (status instanceof Error) found.push(`the agent does not say how it is: ${status.message}`);
  else {
    if (status.departing > 0) found.push(`the agent is still taking ${status.departing} attachments away`);
    for (const problem of status.problems) found.push(`the agent has a problem: ${problem.message}`);
  }

  const wanted = new Set([
    ...options.fixedNamespaces,
    ...pods.map(({ netns }) => netns.slice(netns.lastIndexOf("/") + 1)),
  ]);
  for (const name of namespaces) if (!wanted.has(name)) found.push(`namespace ${name} belongs to no pod`);
  for (const name of wanted) if (!namespaces.includes(name)) found.push(`namespace ${name} is gone`);

  const known = new Set(pods.map(({ containerId }) => containerId));
  for (const [, id = ""] of natRules.matchAll(/id: \\?"([0-9a-f]+)/g))
    if (!known.has(id)) found.push(`a port rule of ${id.slice(0, 12)} stayed behind`);
  if (pods.length === 0)
    for (const { ifname } of links)
      if (!options.fixedLinks.includes(ifname)) found.push(`interface ${ifname} stayed behind`);
  return found;
}

async function leasesOf({ executables, home }: AgreementOptions): Promise<readonly LeaseRow[]> {
  const list = await execa(`${executables}/pipette`, ["ipam", "list", "--json", "--data-dir", home.dataDir]);
  return JSON.parse(list.stdout);
}

function claimedByLeases(leases: readonly LeaseRow[]): Claims {
  const byOwner = new Map<string, string[]>();
  for (const lease of leases) {
    if (lease.state !== "allocated") continue;
    byOwner.set(keyOf(lease), [...(byOwner.get(keyOf(lease)) ?? []), lease.address]);
  }
  return new Map([...byOwner].map(([key, addresses]) => [key, addressText(addresses)]));
}

/** The host's end has no address: that it stands is all that it says. */
function claimedByLinks(links: readonly Link[]): Claims {
  const aliases = links.map(({ ifalias = "" }) => parseAlias(ifalias)).filter((alias) => alias !== undefined);
  return new Map(aliases.map(({ owner }) => [keyOf({ ...owner, containerId: owner.sandboxId }), stands] as const));
}

async function claimedInPods(node: PrivateNode, pods: readonly RuntimePod[]): Promise<Claims> {
  const claims: Claims = new Map();
  for (const pod of pods) {
    const text = await node.runIn(pod.netns, `ip -j addr show ${pod.ifname}`).catch(() => undefined);
    if (text === undefined) continue;
    const [link]: { addr_info: { scope: string; local: string }[] }[] = JSON.parse(text);
    const own = (link?.addr_info ?? []).filter(({ scope }) => scope === "global");
    claims.set(keyOf(pod), addressText(own.map(({ local }) => local)));
  }
  return claims;
}

const stands = "stands";
const keyOf = (of: { network: string; containerId: string; ifname: string }): string =>
  `${of.network} ${of.containerId} ${of.ifname}`;

const addressText = (addresses: readonly string[]): string =>
  addresses
    .map((address) => address.replace(/\/\d+$/, ""))
    .sort()
    .join(", ");

/** One line for each attachment that the sources do not agree on. */
function compare(sources: Readonly<Record<string, Claims>>): string[] {
  const keys = new Set(Object.values(sources).flatMap((claims) => [...claims.keys()]));
  return [...keys].sort().flatMap((key) => {
    const says = Object.entries(sources).map(([source, claims]) => [source, claims.get(key)] as const);
    const different = new Set(says.map(([, claim]) => claim).filter((claim) => claim !== stands));
    if (different.size === 1 && !different.has(undefined)) return [];
    const [network, id = "", ifname] = key.split(" ");
    return [
      `${network} ${id.slice(0, 12)} ${ifname}: ${says.map(([source, claim]) => `${source} ${claim ?? "none"}`).join("; ")}`,
    ];
  });
}

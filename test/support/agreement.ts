import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
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

export interface AgreementOptions {
  readonly node: PrivateNode;
  readonly home: Pick<AgentHome, "directory" | "configFile">;
  readonly executables: string;
  /** Interfaces of the node that belong to no pod. */
  readonly fixedLinks: readonly string[];
  /** Names in /run/netns that belong to no pod. */
  readonly fixedNamespaces: readonly string[];
  /** Codes of findings that the test expects. */
  readonly expected?: readonly string[];
  /** Of the doctor's process, beside this one's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Sweeping goes on after the answer; whatever still disagrees after this long is a fault. Default: ten seconds. */
  readonly withinMs?: number;
}

interface Link {
  readonly ifname: string;
}

interface Report {
  readonly findings: readonly { readonly code: string; readonly what: string }[];
}

/**
 * Checks that leases, kernel interfaces, namespaces, port rules and the runtime's own list agree, at the latest after a
 * moment.
 * @throws with a line for each thing that disagrees
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

/**
 * Runs `pipette doctor` and checks what only a test knows: everything that this node should have.
 * @returns a line for each thing that disagrees at this moment
 */
export async function disagreements(options: AgreementOptions, pods: readonly RuntimePod[]): Promise<string[]> {
  const { node } = options;
  const found = [...(await diagnosis(options, pods)), ...(await differentInPods(node, pods))];
  const links: Link[] = JSON.parse(await node.run("ip -j link"));
  const namespaces = (await node.run("ls /run/netns")).split("\n").filter((name) => name !== "");
  const natRules = await node.run("iptables-save -t nat");

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

/** Not counted: the tests' etcd members have no users, which does not concern pods. */
const ofRegistry = "registry-rights";

/** Notes count as well, because at the end no call is running. */
async function diagnosis(
  { node, home, executables, env = {}, expected = [] }: AgreementOptions,
  pods: readonly RuntimePod[],
): Promise<readonly string[]> {
  const list = join(home.directory, "runtime.json");
  writeFileSync(list, JSON.stringify(pods.map(({ containerId, ifname }) => ({ containerID: containerId, ifname }))));
  const words = ["doctor", "--config", home.configFile, "--runtime", list, "--once", "--json"];
  const [file = "", ...args] = [...node.prefix, `${executables}/pipette`, ...words];
  const { stdout, stderr } = await execa(file, args, {
    cwd: "/",
    env,
    timeout: 60_000,
    stdin: "ignore",
    reject: false,
  });
  if (stdout === "") return [`the doctor cannot look: ${stderr}`];
  const report: Report = JSON.parse(stdout);
  return report.findings
    .filter(({ code }) => code !== ofRegistry && !expected.includes(code))
    .map(({ code, what }) => `${code}: ${what}`);
}

/** The runtime's word on a pod's addresses against those in the namespace that it names. */
async function differentInPods(node: PrivateNode, pods: readonly RuntimePod[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (const pod of pods) {
    const text = await node.runIn(pod.netns, `ip -j addr show ${pod.ifname}`).catch(() => undefined);
    const [link]: { addr_info: { scope: string; local: string }[] }[] = text === undefined ? [] : JSON.parse(text);
    const own = (link?.addr_info ?? []).filter(({ scope }) => scope === "global");
    const [there, wanted] = [addressText(own.map(({ local }) => local)), addressText(pod.addresses)];
    if (there !== wanted)
      found.push(`${pod.containerId.slice(0, 12)} ${pod.ifname}: pod interface ${there || "none"}; runtime ${wanted}`);
  }
  return found;
}

const addressText = (addresses: readonly string[]): string =>
  addresses
    .map((address) => address.replace(/\/\d+$/, ""))
    .sort()
    .join(", ");

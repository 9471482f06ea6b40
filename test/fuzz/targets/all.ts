import type { Target } from "../engine/target.ts";

export interface Listed {
  readonly name: string;
  /** Of the inputs of a run, in relation to the others: slow ones have less. */
  readonly share: number;
  /** With what it tests, and nothing else: code that is instrumented takes its time to load. */
  load(): Promise<Target>;
}

const listed = (name: string, share: number, load: () => Promise<Target>): Listed => ({ name, share, load });

const configurations = () => import("./network-configuration.ts");
const http2 = () => import("./http2.ts");
const streams = () => import("./switch-streams.ts");
const traces = () => import("./traces.ts");
const clusters = () => import("./clusters.ts");
const documents = () => import("./documents.ts");
const files = () => import("./node-files.ts");

export const targets: readonly Listed[] = [
  listed("network-configuration", 10, async () => (await configurations()).networkConfiguration),
  listed("cni-variables", 10, async () => (await configurations()).cniVariables),
  listed("prev-result", 10, async () => (await configurations()).prevResult),
  listed("delegate-result", 10, async () => (await configurations()).delegateResult),
  listed("addresses", 24, async () => (await import("./addresses.ts")).addresses),
  listed("server-http2", 10, async () => (await http2()).serverHttp2),
  listed("client-http2", 12, async () => (await http2()).clientHttp2),
  listed("forwarded-call", 4, async () => (await import("./forwarded.ts")).forwarded),
  listed("protobuf", 20, async () => (await import("./protobuf.ts")).protobuf),
  listed("ovsdb", 10, async () => (await streams()).ovsdb),
  listed("openflow", 4, async () => (await streams()).openflow),
  listed("packet-in", 8, async () => (await traces()).packetIn),
  listed("trace-documents", 4, async () => (await traces()).traceDocuments),
  listed("netlink", 20, async () => (await import("./netlink.ts")).netlink),
  listed("hns", 14, async () => (await import("./hns.ts")).hns),
  listed("etcd", 20, async () => (await clusters()).etcd),
  listed("kubernetes", 1, async () => (await clusters()).kubernetes),
  listed("policies", 6, async () => (await import("./policies.ts")).policies),
  listed("policy-objects", 6, async () => (await import("./policy-objects.ts")).policyObjects),
  listed("controller", 6, async () => (await import("./controller.ts")).controller),
  listed("certificates", 4, async () => (await import("./certificates.ts")).certificates),
  listed("agent-configuration", 3, async () => (await files()).agentConfiguration),
  listed("nodes-file", 3, async () => (await files()).nodesFile),
  listed("runtime-list", 16, async () => (await files()).runtimeList),
  listed("node-records", 2, async () => (await files()).nodeRecords),
  listed("host-local", 1, async () => (await import("./host-local.ts")).hostLocal),
  listed("database", 0.2, async () => (await import("./database.ts")).database),
  listed("documents", 2, async () => (await documents()).documents),
  listed("bundle-archive", 2, async () => (await documents()).bundleArchive),
  listed("redaction", 2, async () => (await documents()).redaction),
  listed("operator-cluster", 2, async () => (await import("./operator.ts")).operatorCluster),
  listed("access-headers", 6, async () => (await import("./access.ts")).accessHeaders),
  listed("page-entrance", 4, async () => (await import("./page-entrance.ts")).pageEntrance),
  listed("page", 6, async () => (await import("./page.ts")).page),
  listed("command-line", 3, async () => (await import("./command-line.ts")).commandLine),
];
export const targetNames: readonly string[] = targets.map(({ name }) => name);

export async function loadTarget(name: string): Promise<Target> {
  const target = targets.find((each) => each.name === name);
  if (target === undefined)
    throw new Error(`Cannot fuzz "${name}": it is none, wanted one of ${targetNames.join(", ")}`);
  return target.load();
}

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { external } from "./lab/addresses.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { call, NamedServer, tally } from "./named-server.ts";
import { gateways, SingleNode } from "./single-node.ts";

const port = 8080;
const clusterIp = { 4: "10.96.0.10", 6: "fd00:96::10" } as const;
const families = [
  [4, 0],
  [6, 1],
] as const;

/** The same through the agent as it is delivered, pods that the plugin has made, and a file of services. */
describeWith("services of an agent", ["root", "openvswitch", "nft"], () => {
  const stack = new AsyncDisposableStack();
  const file = join(stack.use(scratchDir()).path, "services.yaml");
  let single: SingleNode;
  let [a, b, client]: LabPod[] = [];

  beforeAll(async () => {
    compileExecutables();
    serve([]);
    const cidrs = ["10.96.0.0/16", "fd00:96::/112"];
    single = stack.use(await SingleNode.start({ services: { file, cidrs } }));
    [a, b, client] = await Promise.all(["a", "b", "client"].map((name) => single.node.addPod(name)));
    for (const pod of [a!, b!]) stack.use(await NamedServer.start(pod.namespace, pod.name, port));
    stack.use(await NamedServer.start(single.node.namespace, "node", port));
    stack.use(await NamedServer.start(single.underlay.namespace, "outside", port));
  });
  afterAll(() => stack.disposeAsync());

  /** A service of each family with these endpoints, IPv4 and IPv6. */
  function serve(endpoints: readonly (readonly string[])[], more: object = {}): void {
    const services = families.map(([family, i]) => ({
      name: `default/web-${family}`,
      clusterIp: clusterIp[family],
      protocol: "tcp",
      port: 80,
      endpoints: endpoints.map((of) => ({ ip: of[i], port })),
      ...more,
    }));
    writeFileSync(file, JSON.stringify({ services }));
  }

  /** The node's switch follows the file before its kernel, which refuses what has no endpoint yet. */
  const reaches = async (family: 4 | 6, name: string, from: NetworkNamespace = client!.namespace): Promise<void> => {
    await eventually(async () => (await call(from, clusterIp[family], 80, 500))?.name === name, name);
  };

  test.each(families)("pods and the node reach what the file says, as it changes: IPv%i", async (family, i) => {
    serve([a!.addresses]);
    await reaches(family, "a");
    expect(await call(a!.namespace, clusterIp[family], 80)).toEqual({ name: "a", seenAs: gateways[i] });
    await reaches(family, "a", single.node.namespace);
    expect(await call(single.node.namespace, clusterIp[family], 80)).toEqual({ name: "a", seenAs: gateways[i] });
    serve([a!.addresses, b!.addresses]);
    await reaches(family, "b");
    expect(Object.keys(await tally(50, () => call(client!.namespace, clusterIp[family], 80))).sort()).toEqual([
      "a",
      "b",
    ]);
    serve([single.node.addresses]);
    await reaches(family, "node");
    expect(await call(single.node.namespace, clusterIp[family], 80)).toMatchObject({ name: "node" });
  });

  test.each(families)("a host outside sees the node, whoever asks through the service: IPv%i", async (family, i) => {
    serve([external]);
    await reaches(family, "outside");
    const asNode = { name: "outside", seenAs: single.node.addresses[i] };
    expect(await call(client!.namespace, clusterIp[family], 80)).toEqual(asNode);
    expect(await call(single.node.namespace, clusterIp[family], 80)).toEqual(asNode);
  });

  test("a file that is wrong changes nothing, and the log and the status say where", async () => {
    serve([b!.addresses]);
    await reaches(4, "b");
    const fault = async () => (await single.node.home.status()).servicesFault;
    expect(await fault()).toBe("");
    writeFileSync(file, "services:\n  - name: half\n");
    await eventually(() => single.node.agent.stderr.includes(`${file}:2:`), "a line about the file");
    expect(await fault()).toContain(`${file}:2:`);
    expect(await tally(5, () => call(client!.namespace, clusterIp[4], 80))).toEqual({ b: 5 });
    serve([b!.addresses]);
    await eventually(async () => (await fault()) === "", "the end of the fault");
  });

  test("an agent that is killed and starts again leaves clients with their endpoints, and takes up what has changed", async () => {
    serve([a!.addresses, b!.addresses], { affinitySeconds: 600 });
    // The services of both families take it up one after the other.
    const learning = async (protocol: string): Promise<boolean> =>
      (await single.node.flows()).some((flow) => flow.includes("learn(") && flow.includes(`,${protocol},`));
    await eventually(async () => (await learning("tcp")) && (await learning("tcp6")), "affinity");
    const own = (await call(client!.namespace, clusterIp[4], 80))!.name;
    await single.node.agent.end("SIGKILL");
    expect(await tally(20, () => call(client!.namespace, clusterIp[4], 80))).toEqual({ [own]: 20 });
    await single.node.startAgent();
    expect(await tally(20, () => call(client!.namespace, clusterIp[4], 80))).toEqual({ [own]: 20 });
    await single.node.agent.end("SIGKILL");
    serve([]);
    await single.node.startAgent();
    expect(await call(client!.namespace, clusterIp[4], 80, 500)).toBeUndefined();
    expect(
      (await single.node.flows()).filter((flow) => flow.includes("table=100,") && !flow.includes("priority=0")),
    ).toEqual([]);
  });

  test("a switch that is killed and starts again has the services again, with what has changed meanwhile", async () => {
    serve([a!.addresses]);
    await reaches(4, "a");
    await single.node.vswitch.stop("ovs-vswitchd", "SIGKILL");
    serve([b!.addresses]);
    await single.node.vswitch.startSwitch();
    await reaches(4, "b");
    await reaches(6, "b");
    expect(await tally(20, () => call(client!.namespace, clusterIp[4], 80))).toEqual({ b: 20 });
  });

  test("an agent that is asked to end does so, though it follows a file", async () => {
    expect(await single.node.agent.end("SIGTERM")).toBe(0);
  });
});

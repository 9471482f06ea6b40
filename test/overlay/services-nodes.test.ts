import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import type { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { nodeOn } from "./lab/addresses.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { call, NamedServer, tally } from "./named-server.ts";

const port = 8080;
const clusterIp = { 4: "10.96.0.10", 6: "fd00:96::10" } as const;
const families = [
  [4, 0],
  [6, 1],
] as const;

/** As whom the first node's own packets, and those of hosts outside, come to an endpoint that is beyond it. */
const modes = [
  { mode: "encap", nodes: ["a", "b"], seenAs: "gateway" },
  { mode: "noEncap", nodes: ["a", "a"], seenAs: "node" },
] as const;

/** The client's node is not the endpoint's. */
for (const { mode, nodes, seenAs } of modes)
  describeWith(`services over two nodes: ${mode}`, ["root", "openvswitch", "nft", "etcd"], () => {
    const stack = new AsyncDisposableStack();
    const file = join(stack.use(scratchDir()).path, "services.yaml");
    let lab: Lab;
    let [near, far]: LabPod[] = [];

    beforeAll(async () => {
      compileExecutables();
      serve([]);
      const cidrs = ["10.96.0.0/16", "fd00:96::/112"];
      lab = stack.use(await Lab.start({ nodes, ovs: { mode, services: { file, cidrs } } }));
      [near, far] = await Promise.all(lab.nodes.map((node, i) => node.addPod(["near", "far"][i] ?? "")));
      for (const pod of [near!, far!]) stack.use(await NamedServer.start(pod.namespace, pod.name, port));
      stack.use(await NamedServer.start(lab.node(2).namespace, "node2", port));
      // Somebody outside who takes the first node for the way to services.
      const [via4, via6] = nodeOn("a", 1);
      await lab.underlay.namespace.ip(`route add 10.96.0.0/16 via ${via4}`, `route add fd00:96::/112 via ${via6}`);
    });
    afterAll(() => stack.disposeAsync());

    function serve(endpoints: readonly (readonly string[])[]): void {
      const services = families.map(([family, i]) => ({
        name: `default/web-${family}`,
        clusterIp: clusterIp[family],
        protocol: "tcp",
        port: 80,
        endpoints: endpoints.map((of) => ({ ip: of[i], port })),
      }));
      writeFileSync(file, JSON.stringify({ services }));
    }

    /** Of the first node, which chooses for all who do not stand on the other. */
    const chooser = (i: 0 | 1) => (seenAs === "gateway" ? near!.gateways[i] : lab.node(1).addresses[i]);

    /** Each node follows the file by itself, its switch before its kernel, and refuses what has no endpoint yet. */
    const reaches = async (family: 4 | 6, name: string, from: NetworkNamespace = near!.namespace): Promise<void> => {
      await eventually(async () => (await call(from, clusterIp[family], 80, 500))?.name === name, name);
    };

    test.each(families)("a pod of another node answers pods, nodes and hosts outside: IPv%i", async (family, i) => {
      serve([far!.addresses]);
      await reaches(family, "far");
      // Pods are seen as they are; others as the node that chose for them, which has to undo it.
      expect(await call(near!.namespace, clusterIp[family], 80)).toEqual({ name: "far", seenAs: near!.addresses[i] });
      await reaches(family, "far", lab.node(1).namespace);
      const asChooser = { name: "far", seenAs: chooser(i) };
      expect(await call(lab.node(1).namespace, clusterIp[family], 80)).toEqual(asChooser);
      expect(await call(lab.underlay.namespace, clusterIp[family], 80)).toEqual(asChooser);
      await reaches(family, "far", far!.namespace);
      expect(await call(far!.namespace, clusterIp[family], 80)).toEqual({ name: "far", seenAs: far!.gateways[i] });
    });

    test.each(families)("endpoints of both nodes, and another node itself: IPv%i", async (family, i) => {
      serve([near!.addresses, far!.addresses]);
      await reaches(family, "near");
      expect(Object.keys(await tally(50, () => call(near!.namespace, clusterIp[family], 80))).sort()).toEqual([
        "far",
        "near",
      ]);
      // A pod of this node sees who comes from outside.
      const fromOutside = await Promise.all(
        Array.from({ length: 20 }, () => call(lab.underlay.namespace, clusterIp[family], 80)),
      );
      const seen = new Set(fromOutside.map((answer) => `${answer?.name} ${answer?.seenAs}`));
      const outside = [...seen].find((text) => text.startsWith("near "))?.slice(5);
      expect([...seen].sort()).toEqual([`far ${chooser(i)}`, `near ${outside}`]);
      expect([...near!.gateways, ...lab.node(1).addresses]).not.toContain(outside);
      serve([lab.node(2).addresses]);
      await reaches(family, "node2");
      const asNode = { name: "node2", seenAs: lab.node(1).addresses[i] };
      expect(await call(near!.namespace, clusterIp[family], 80)).toEqual(asNode);
      expect(await call(lab.node(1).namespace, clusterIp[family], 80)).toEqual(asNode);
    });
  });

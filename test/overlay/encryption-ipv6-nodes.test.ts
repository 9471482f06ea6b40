import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { EtcdCluster } from "../registry/etcd-cluster.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { clusterNetworks } from "./lab/addresses.ts";
import { Capture } from "./lab/capture.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";
import { answers } from "./lab/reach.ts";
import { Relay } from "./lab/relay.ts";

/** Of a packet of IPv6 between the nodes: its own header, UDP's, and 32 of WireGuard's. */
const largest = 1500 - 80;

describeWith(
  "WireGuard between two nodes with only IPv6 addresses",
  ["root", "openvswitch", "nft", "etcd", "wireguard-go", "tun"],
  () => {
    const stack = new AsyncDisposableStack();
    let lab: Lab;
    let near: LabPod;
    let far: LabPod;
    let capture: Capture;

    beforeAll(async () => {
      compileExecutables();
      const etcd = stack.use(await EtcdCluster.start());
      const registry = () => ({ type: "etcd", endpoints: etcd.endpoints, networks: clusterNetworks });
      const ovs = { encryption: "wireguard" };
      lab = stack.use(await Lab.ground({ nodes: ["a", "a"], onlyIpv6: true, registry, ovs }));
      for (const { namespace } of lab.nodes)
        stack.use(new Relay(namespace, "127.0.0.1", Number(new URL(etcd.endpoint(0)).port)));
      await Promise.all(lab.nodes.map((node) => node.startAgent()));
      [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
      capture = stack.use(await Capture.start(lab.underlay, [1, 2]));
    });
    afterAll(() => stack.disposeAsync());

    test("pods reach each other in both families, and nothing of it can be read between the nodes", async () => {
      for (const address of far.addresses)
        await eventually(() => answers(near.namespace, address, { seconds: 1 }), "an answer of the other");
      capture.clear();
      expect(far.addresses).toHaveLength(2);
      for (const address of far.addresses) expect(await says(near, address)).toBe(true);
      expect(capture.having(marker)).toBe(0);
      const kinds = [...capture.kinds().keys()].filter((kind) => kind !== "other");
      expect(kinds).toEqual(["wireguard"]);
      expect(capture.of("wireguard", lab.node(1).addresses[1]).length).toBeGreaterThanOrEqual(6);
      expect((await lab.node(1).home.status()).shortcomings).toEqual([]);
    });

    test("the largest packet fills the link, and one byte more does not pass", async () => {
      for (const address of far.addresses) {
        await eventually(() => answers(near.namespace, address, { packetBytes: largest }), "the largest packet");
        expect(await answers(near.namespace, address, { packetBytes: largest + 1, seconds: 1 })).toBe(false);
      }
    });

    test("without the device nothing leaves, in neither family", async () => {
      using _ = await lab.node(1).agent.held();
      await lab.node(1).namespace.ip("link del pipette-wg0");
      capture.clear();
      for (const address of far.addresses) expect(await says(near, address)).toBe(false);
      for (const address of near.addresses) expect(await says(far, address)).toBe(false);
      expect(capture.having(marker)).toBe(0);
      expect([...capture.kinds().keys()].filter((kind) => kind !== "wireguard" && kind !== "other")).toEqual([]);
    });
  },
);

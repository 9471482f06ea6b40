import { beforeAll, describe, expect, test } from "vitest";
import type { TunnelType } from "../../agent/config/ovs-config.ts";
import { podMtu } from "../../agent/config/pod-mtu.ts";
import { parseCidr } from "../../shared/net/ip.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";
import { answers } from "./lab/reach.ts";

const nodes = [parseCidr("172.30.0.1/24")].filter((cidr) => cidr !== undefined);
const ipsec = { esp: "userspace", forceUdp: false } as const;

/** The first is tried in `encryption-ipsec.test.ts`. */
describe.each<TunnelType>(["vxlan", "gre"])("IPsec around %s", (tunnel) => {
  describeWith(
    "between two nodes",
    ["root", "openvswitch", "nft", "etcd", "strongswan", "kernel-libipsec", "ovs-monitor-ipsec", "tun"],
    () => {
      beforeAll(compileExecutables);

      test("nothing can be read, and the largest packet is as computed", async () => {
        const ovs = { encryption: "ipsec", ipsec: { esp: ipsec.esp }, tunnel };
        await using lab = await Lab.start({ nodes: ["a", "a"], esp: ipsec.esp, ovs });
        const [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
        using capture = await Capture.start(lab.underlay, [1, 2]);
        await eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other");
        for (const address of far.addresses) expect(await says(near, address)).toBe(true);
        expect(capture.having(marker)).toBe(0);
        const kinds = [...capture.kinds().keys()].filter((kind) => kind !== "ike" && kind !== "other");
        expect(kinds).toEqual(["esp"]);
        const largest = podMtu(1500, "encap", tunnel, nodes, { encryption: "ipsec", ipsec });
        for (const address of far.addresses) {
          await eventually(() => answers(near.namespace, address, { packetBytes: largest }), "the largest packet");
          const tooLarge = { packetBytes: largest + 1, seconds: 1 };
          expect(await answers(near.namespace, address, tooLarge)).toBe(false);
        }
      });
    },
  );
});

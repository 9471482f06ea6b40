import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { Capture } from "./lab/capture.ts";
import { Lab } from "./lab/lab.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { placesOf } from "./lab/places.ts";
import { answers, unansweredPings } from "./lab/reach.ts";
import { failedConnections } from "./lab/tcp.ts";

/** What pods say to each other; `ping -p` repeats it. */
const said = "5069706574746521deadbeef00c0ffee";
const marker = Buffer.from(said, "hex");

describeWith("WireGuard between two nodes", ["root", "openvswitch", "nft", "etcd", "wireguard-go", "tun"], () => {
  let lab: Lab;
  let near: LabPod;
  let far: LabPod;
  let capture: Capture;

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"], ovs: { encryption: "wireguard" } });
    [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
    capture = await Capture.start(lab.underlay, [1, 2]);
  });
  afterAll(async () => {
    capture?.[Symbol.dispose]();
    await lab?.[Symbol.asyncDispose]();
  });

  /** Says the marker, and whether it was answered. */
  const says = async (from: LabPod, to: string): Promise<boolean> => {
    const ping = `ping -n -q -c 3 -i 0.2 -W 1 -p ${said} -s 200 ${to}`.split(" ");
    return (await from.namespace.start(ping).ended).status === 0;
  };

  test("pods of two nodes reach each other, and nothing of it can be read between the nodes", async () => {
    const places = placesOf(lab);
    await eventually(async () => answers(near.namespace, far.address(4)), "the first answer");
    expect(await unansweredPings(places)).toEqual([]);
    expect(await failedConnections(places)).toEqual([]);
    capture.clear();
    for (const address of far.addresses) expect(await says(near, address)).toBe(true);
    expect(capture.having(marker)).toBe(0);
    const kinds = capture.kinds();
    expect(kinds.get("wireguard")).toBeGreaterThanOrEqual(12);
    expect([...kinds.keys()].filter((kind) => kind !== "wireguard" && kind !== "other")).toEqual([]);
  });
});

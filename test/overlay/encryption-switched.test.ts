import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith, type Need } from "../support/requires.ts";
import { Capture, type FrameKind } from "./lab/capture.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { marker, says } from "./lab/marked-pings.ts";
import { encryptingDevice } from "./lab/own-run.ts";
import { answers } from "./lab/reach.ts";

interface Kind {
  readonly encryption: "wireguard" | "ipsec";
  readonly needs: readonly Need[];
  readonly lab: Pick<LabOptions, "esp">;
  /** Keys of the section `ovs` beside the kind. */
  readonly ovs?: object;
  /** What encrypted packets are. */
  readonly seen: readonly FrameKind[];
}

const wireguard: Kind = {
  encryption: "wireguard",
  needs: ["wireguard-go"],
  lab: {},
  seen: ["wireguard"],
};
const ipsec: Kind = {
  encryption: "ipsec",
  needs: ["strongswan", "kernel-libipsec", "ovs-monitor-ipsec"],
  lab: { esp: "userspace" },
  ovs: { ipsec: { esp: "userspace" } },
  seen: ["esp"],
};

/** Pods run, and the nodes' configuration changes under them, one node after the other. */
describe.each([wireguard, ipsec])("$encryption", (kind) => {
  describeWith("turned on and off", ["root", "openvswitch", "nft", "etcd", "tun", ...kind.needs], () => turned(kind));
});

function turned(kind: Kind): void {
  let lab: Lab;
  let near: LabPod;
  let far: LabPod;
  /** By the node that sends. */
  let captures: readonly [Capture, Capture];

  beforeAll(async () => {
    compileExecutables();
    lab = await Lab.start({ nodes: ["a", "a"], ...kind.lab, ovs: { encryption: "none", ...kind.ovs } });
    [near, far] = (await Promise.all(lab.nodes.map((node) => node.addPod("web")))) as [LabPod, LabPod];
    captures = [await Capture.start(lab.underlay, [1]), await Capture.start(lab.underlay, [2])];
  });
  afterAll(async () => {
    for (const capture of captures ?? []) capture[Symbol.dispose]();
    await lab?.[Symbol.asyncDispose]();
  });

  const turn = async (node: LabNode, encryption: "none" | Kind["encryption"]): Promise<void> => {
    await node.agent.end();
    node.changeOvs({ encryption });
    await node.startAgent();
  };
  const clear = (): void => {
    for (const capture of captures) capture.clear();
  };
  const reached = (): Promise<unknown> =>
    eventually(() => answers(near.namespace, far.address(4), { seconds: 1 }), "an answer of the other");
  const kindsOf = (capture: Capture): FrameKind[] =>
    [...capture.kinds().keys()].filter((kind) => kind !== "other").sort();

  test("without encryption all can be read: the search finds it", async () => {
    await reached();
    clear();
    for (const address of far.addresses) expect(await says(near, address)).toBe(true);
    for (const capture of captures) expect(capture.having(marker)).toBeGreaterThanOrEqual(6);
    expect(kindsOf(captures[0])).toEqual(["geneve"]);
  });

  test("a node that encrypts sends nothing to one that does not, nor believes it", async () => {
    await turn(lab.node(1), kind.encryption);
    clear();
    for (const address of far.addresses) expect(await says(near, address)).toBe(false);
    expect(captures[0].having(marker)).toBe(0);
    expect(kindsOf(captures[0])).toEqual([]);
    const { shortcomings } = await lab.node(1).home.status();
    expect(shortcomings.join("\n")).toContain('nothing goes to the pods of node "n2": it does not encrypt');
    // The other one still sends in clear, which is heard by nobody.
    for (const address of near.addresses) expect(await says(far, address)).toBe(false);
    expect(captures[0].having(marker)).toBe(0);
    const again = await lab.node(1).home.status();
    expect(again.shortcomings.join("\n")).toMatch(/\d+ packets of other nodes' pods came in clear/);
  });

  test("once both encrypt, the same pods reach each other", async () => {
    await turn(lab.node(2), kind.encryption);
    clear();
    await reached();
    for (const address of far.addresses) expect(await says(near, address)).toBe(true);
    for (const capture of captures) {
      expect(capture.having(marker)).toBe(0);
      expect(kindsOf(capture).filter((one) => one !== "ike")).toEqual(kind.seen);
    }
  });

  test("a node whose subnet nobody has heard of is sent nothing", async () => {
    clear();
    for (const address of ["10.10.77.7", "fd10:0:0:77::7"]) expect(await says(near, address)).toBe(false);
    expect(captures[0].having(marker)).toBe(0);
    // Nodes greet each other now and then, encrypted.
    expect(kindsOf(captures[0]).filter((one) => one !== "ike" && !kind.seen.includes(one))).toEqual([]);
  });

  test("a node whose device or gateway gets another name leaves nothing of the former ones", async () => {
    const [first] = lab.nodes;
    await first?.agent.end();
    first?.changeOvs({ gateway: "other-gw0", wireguard: { device: "other-wg0" } });
    await first?.startAgent();
    await reached();
    const links = (await first?.namespace.run("ip -br link")) ?? "";
    for (const former of ["pipette-gw0", encryptingDevice]) expect(links).not.toContain(former);
    const tables = (await first?.namespace.run("nft list tables")) ?? "";
    expect(tables).toContain("pipette-clear-other-gw0");
    expect(tables).not.toContain("pipette-clear-pipette-gw0");
  });

  test("on the way back the last node that encrypts says nothing in clear", async () => {
    await turn(lab.node(1), "none");
    clear();
    expect(await says(far, near.address(4))).toBe(false);
    expect(captures[1].having(marker)).toBe(0);
    await turn(lab.node(2), "none");
    await reached();
    clear();
    expect(await says(near, far.address(4))).toBe(true);
    expect(captures[1].having(marker)).toBeGreaterThanOrEqual(3);
    for (const { namespace } of lab.nodes) {
      expect(await namespace.run("nft list tables")).not.toContain("pipette-clear");
      expect(await namespace.run("ip -br link")).not.toContain(encryptingDevice);
    }
    for (const node of lab.nodes) {
      const rows = await node.vswitch.vsctl("show");
      for (const left of ["psk", "ipsec_", "remote_name"]) expect(rows).not.toContain(left);
      if (kind.encryption !== "ipsec") continue;
      const without = async (): Promise<boolean> => !/p-n\d-/.test(await node.ipsec.run("ipsec", "statusall"));
      await eventually(without, `strongSwan of ${node.name} without connections`);
    }
  });
}

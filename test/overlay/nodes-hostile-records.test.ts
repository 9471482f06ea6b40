import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { external } from "./lab/addresses.ts";
import { Lab, type LabOptions } from "./lab/lab.ts";
import type { LabNode } from "./lab/lab-node.ts";
import type { LabPod } from "./lab/lab-pod.ts";
import { answers } from "./lab/reach.ts";
import { deleteRecords, type PutRecord, putRecords } from "./lab/registry-records.ts";
import { routesOf } from "./lab/traces.ts";

const liar = { addresses: ["172.30.0.66", "fd30:a::66"] } as const;

/** What a node's record may not say; the name says why. The second node has 10.10.1.0/24, fd10:0:0:1::/64 or so. */
const hostile: Readonly<Record<string, PutRecord>> = {
  multicast: { ...liar, subnets: ["224.0.0.0/4"] },
  loopback: { ...liar, subnets: ["127.0.0.0/8"] },
  "loopback-part": { ...liar, subnets: ["127.0.0.52/30"] },
  nowhere: { ...liar, subnets: ["0.0.0.0/8"] },
  everything: { ...liar, subnets: ["0.0.0.0/0"] },
  "half-of-all": { ...liar, subnets: ["128.0.0.0/1"] },
  broadcast: { ...liar, subnets: ["255.255.255.252/30"] },
  "last-address": { ...liar, subnets: ["255.255.255.255/32"] },
  metadata: { ...liar, subnets: ["169.254.169.252/30"] },
  "host-outside": { ...liar, subnets: ["198.51.100.0/30"] },
  "registrys-network": { ...liar, subnets: ["172.30.0.248/29"] },
  // Its gateway would be the first node's own address, or the second's.
  "gateway-is-node-1": { ...liar, subnets: ["172.30.0.0/30"] },
  "gateway-in-pods-network": { addresses: ["10.10.200.1"], subnets: ["10.10.200.0/24"] },
  services: { ...liar, subnets: ["10.96.0.0/24"] },
  "part-of-a-subnet": { ...liar, subnets: ["10.10.0.0/28"] },
  "two-subnets": { ...liar, subnets: ["10.10.64.0/18"] },
  "multicast-6": { ...liar, subnets: ["ff00::/8"] },
  "loopback-6": { ...liar, subnets: ["::/96"] },
  "link-local-6": { ...liar, subnets: ["fe80::/64"] },
  "world-6": { ...liar, subnets: ["2000::/3"] },
  "host-outside-6": { ...liar, subnets: ["2001:db8:51::/64"] },
  "link-6": { ...liar, subnets: ["fd30:a::/64"] },
  "good-and-bad": { ...liar, subnets: ["10.10.77.0/24", "2001:db8:51::/64"] },
  "address-of-node-1": { addresses: ["172.30.0.1"], subnets: ["10.10.78.0/24"] },
  "address-in-pods-of-node-1": { addresses: ["10.10.0.9"], subnets: ["10.10.79.0/24"] },
  "networks-own-address": { addresses: ["172.30.0.255"], subnets: ["10.10.80.0/24"] },
};

/** Of a pod's address, as the lab's registry leases them. */
const subnetOf = (address: string): string =>
  address.includes(":") ? address.replace(/::.*/, "::/64") : address.replace(/\d+$/, "0/24");

const modes: readonly { readonly name: string; readonly lab: Omit<LabOptions, "nodes"> }[] = [
  { name: "encap", lab: { ovs: { mode: "encap" } } },
  { name: "noEncap", lab: { ovs: { mode: "noEncap" } } },
  { name: "noEncap with an uplink", lab: { ovs: { mode: "noEncap" }, nic: "uplink" } },
  { name: "hybrid", lab: { ovs: { mode: "hybrid" } } },
  { name: "a kernel bridge", lab: { dataPath: "bridge" } },
];

describeWith("what a node's record may not say", ["root", "openvswitch", "nft", "etcd", "etcdctl"], () => {
  beforeAll(compileExecutables);

  // Who is left out is decided before any data path hears of it: one of each kind shows the rest.
  describe.each(modes)("$name", ({ name, lab: options }) => {
    const isOneOfItsKind = ["encap", "a kernel bridge"].includes(name);
    let lab: Lab;
    let pods: readonly LabPod[];
    let before: readonly (readonly string[])[];
    const names = Object.keys(hostile);

    beforeAll(async () => {
      lab = await Lab.start({ nodes: ["a", "a"], ...options });
      pods = await Promise.all(lab.nodes.map((node) => node.addPod("web")));
      before = await Promise.all(
        lab.nodes.map((node) =>
          eventually(async () => {
            const routes = await routesOf(node);
            return routes.length === 2 && routes;
          }, `the routes of ${node.name}`),
        ),
      );
    });
    afterAll(() => lab?.[Symbol.asyncDispose]());

    const refusals = async (node: LabNode): Promise<readonly string[]> => (await node.home.status()).refusals;

    /** Everything is as it was before anybody wrote, in packets and routes. */
    async function expectUnharmed(): Promise<void> {
      // An agent that was killed at once had not noted its peers yet, and has to hear of them again.
      await expect.poll(() => Promise.all(lab.nodes.map(routesOf))).toEqual(before);
      const [web, db] = pods as [LabPod, LabPod];
      for (const address of db.addresses) expect(await answers(web.namespace, address)).toBe(true);
      // The node's own packets, to pods and to hosts that a record has named.
      for (const address of [...db.addresses, ...external]) {
        expect(await answers(lab.node(1).namespace, address)).toBe(true);
      }
    }

    test("each is left out by name and reason, and nothing of the node goes its way", async () => {
      await putRecords(lab, hostile);
      for (const node of lab.nodes) {
        await eventually(async () => (await refusals(node)).length >= names.length, "the refusals");
        const said = await refusals(node);
        for (const name of names)
          expect(said.filter((line) => line.startsWith(`node "${name}" is left out`))).toHaveLength(1);
        expect(said).toHaveLength(names.length);
        const text = await node.pipette("status", "--socket", node.home.socket);
        expect(text).toContain('refused: node "metadata" is left out');
        expect(text).not.toContain("no problems");
      }
      await expectUnharmed();
    });

    if (!isOneOfItsKind) return;

    test("an agent starts while they stand, and after they have gone", async () => {
      const node = lab.node(1);
      await node.agent.end("SIGKILL");
      await node.startAgent();
      await eventually(async () => (await refusals(node)).length === names.length, "the refusals after the start");
      await expectUnharmed();
      await deleteRecords(lab, names);
      await eventually(async () => (await refusals(node)).length === 0, "their end");
      await node.agent.end("SIGKILL");
      await node.startAgent();
      await expectUnharmed();
    });

    test("a node that joins while others' subnets and addresses are claimed goes by who had them first", async () => {
      const victim = lab.node(2);
      const subnets = victim.pods.size === 0 ? [] : [...victim.pods].flatMap((pod) => pod.addresses.map(subnetOf));
      const thieves = {
        // Both come before the second node by name.
        "a-thief": { ...liar, subnets },
        "b-thief": { addresses: victim.addresses, subnets: ["10.10.90.0/24", "fd10:0:0:90::/64"] },
      };
      await putRecords(lab, thieves);
      const node = await lab.addNode("a");
      await node.startAgent();
      const said = await eventually(async () => {
        const all = await refusals(node);
        return all.length === 2 && all;
      }, "the refusals");
      for (const name of Object.keys(thieves))
        expect(said.join("\n")).toMatch(new RegExp(`node "${name}" is left out: it has .*"${victim.name}"`));
      const pod = await node.addPod("late");
      for (const other of pods)
        for (const address of other.addresses) expect(await answers(pod.namespace, address)).toBe(true);
      // So do those that were there before.
      const [web, db] = pods as [LabPod, LabPod];
      for (const address of db.addresses) expect(await answers(web.namespace, address)).toBe(true);
      await deleteRecords(lab, Object.keys(thieves));
      await node.agent.end();
      await lab.node(1).pipette("nodes", "release", node.name, "--force", "--config", lab.node(1).home.configFile);
      await lab.removeNode(node);
      await expectUnharmed();
    });

    test("what the release before has kept of them ends no agent, with a registry and without", async () => {
      const node = lab.node(1);
      await node.agent.end();
      const file = join(node.home.dataDir, "nodes.json");
      const { admitted: _, ...kept } = JSON.parse(readFileSync(file, "utf8"));
      const { addresses } = liar;
      for (const subnet of ["224.0.0.0/4", "127.0.0.0/8", "172.30.0.0/30", "128.0.0.0/1", "2000::/3"])
        kept.nodes.push({ name: `kept-${kept.nodes.length}`, uid: "u", addresses, subnets: [subnet] });
      writeFileSync(file, JSON.stringify(kept));
      await lab.etcd.signal(0, "SIGKILL");
      await node.startAgent();
      expect((await node.home.status()).cluster).toContain("1 others; from what was last known");
      expect(await refusals(node)).toHaveLength(5);
      expect(await routesOf(node)).toEqual(before[0]);
      await lab.etcd.startMember(0);
      await eventually(async () => (await refusals(node)).length === 0, "the registry's word");
      await expectUnharmed();
    });
  });
});

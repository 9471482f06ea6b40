import { afterAll, beforeAll, expect, test } from "vitest";
import { describeWine } from "../wine/describe-wine.ts";
import { executables, onDriveZ } from "../wine/prefix.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

/** Another IPAM plugin as far as ours can tell: executed for each verb, with leases in a place of its own. */
const ipam = { type: "pipette-ipam.exe", dataDir: "C:\\other", ranges: [[{ subnet: "10.9.0.0/24" }]], cooldownMs: 0 };

describeWine("pods whose addresses another IPAM plugin keeps", (wine) => {
  let node: WindowsNode;
  beforeAll(async () => {
    node = await WindowsNode.make(wine.prefix);
    await node.start();
  });
  afterAll(() => node[Symbol.asyncDispose]());

  const options = { conf: { ipam }, path: onDriveZ(executables) };
  const joins = { ...options, netns: "container:a" };
  const addresses = () => node.endpoints().flatMap(addressesOf);
  const answer = async (verb: "ADD" | "DEL", id: string, more: object): Promise<Record<string, unknown>> => {
    const answered = await node.cni(verb, id, { ...options, ...more });
    if (answered.t === "error") throw new Error(JSON.stringify(answered));
    return answered.text === "" ? {} : (JSON.parse(answered.text) as Record<string, unknown>);
  };

  test("a workload container joins what its sandbox has, and asks that plugin for nothing", async () => {
    const netns = node.stubs.hns.newNamespace();
    expect(await node.cni("ADD", "w", joins)).toMatchObject({ t: "error", code: 101 });
    const first = await answer("ADD", "a", { netns });
    const joined = await answer("ADD", "w", joins);
    expect(joined["ips"]).toEqual(first["ips"]);
    expect(addresses()).toEqual(["10.9.0.2"]);
    await answer("DEL", "w", joins);
    expect(addresses()).toEqual(["10.9.0.2"]);
    // The next address of that plugin is the second: nobody has asked it for the workloads.
    const b = node.stubs.hns.newNamespace();
    await answer("ADD", "b", { netns: b });
    expect(addresses()).toEqual(["10.9.0.2", "10.9.0.3"]);
    await answer("DEL", "a", { netns });
    await answer("DEL", "b", { netns: b });
    expect([addresses(), await node.leases()]).toEqual([[], []]);
  });

  test("while the agent is away a workload's DEL leaves no word, and its sandbox's is carried out later", async () => {
    const netns = node.stubs.hns.newNamespace();
    await answer("ADD", "a", { netns });
    await node.stop();
    await answer("DEL", "w", joins);
    await node.start();
    await answer("ADD", "w", joins);
    expect(addresses()).toHaveLength(1);
    await node.stop();
    await answer("DEL", "a", { netns });
    expect(addresses()).toHaveLength(1);
    await node.start();
    expect([addresses(), await node.disagreements()]).toEqual([[], []]);
  });
});

import { writeFileSync } from "node:fs";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { describeWine } from "../wine/describe-wine.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

/** What users of other plugins have lived through on Windows; the numbers are those of the list of such problems. */
describeWine("what others have lived through", (wine) => {
  let node: WindowsNode;
  let netns = "";
  beforeAll(async () => {
    node = await WindowsNode.make(wine.prefix);
    await node.start({}, { hnsTimeoutMs: 4_000 });
  });
  afterAll(() => node[Symbol.asyncDispose]());
  beforeEach(() => {
    netns = node.stubs.hns.newNamespace();
  });

  const added = async (id: string, space = netns): Promise<string> => {
    const answer = await node.cni("ADD", id, { netns: space });
    if (answer.t === "error") throw new Error(JSON.stringify(answer));
    return JSON.parse(answer.text).ips[0].address.replace("/24", "");
  };
  const deleted = async (id: string, space = netns): Promise<void> =>
    expect(await node.cni("DEL", id, { netns: space })).toMatchObject({ t: "ok" });
  const states = async (): Promise<readonly string[]> => (await node.leases()).map(({ state }) => state);
  const isClean = async (): Promise<void> => expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);

  test('peers 3: an endpoint that HNS calls "deleted" and keeps holds its address, over a restart too', async () => {
    const first = await added("a");
    const others: string[] = [];
    {
      using _ = node.stubs.hns.fault({ call: "HcnDeleteEndpoint", pretends: true });
      await deleted("a");
      expect(await states()).toEqual(["releasing"]);
      others.push(await added("b", node.stubs.hns.newNamespace()));
      await node.stop(true);
      await node.start({}, { hnsTimeoutMs: 4_000 });
      others.push(await added("c", node.stubs.hns.newNamespace()));
      expect(others).not.toContain(first);
    }
    await expect.poll(() => node.endpoints().flatMap(addressesOf)).toEqual(others);
    for (const id of ["b", "c"]) await deleted(id, "");
    await isClean();
  });

  test("peers 7: neither a plugin that is killed nor a database that is damaged stops the calls that follow", async () => {
    for (let i = 0; i < 3; i++) {
      using hang = node.stubs.hns.fault({ call: "HcnCreateEndpoint", times: 1, holdMs: "until released" });
      const plugin = node.startPlugin("ADD", "a", { netns });
      await hang.hit();
      plugin.kill("SIGKILL");
      await plugin.ended;
    }
    const first = await added("a");
    await node.stop(true);
    for (const file of ["leases.db", "leases.db-wal"])
      writeFileSync(node.prefix.unixPath(`${node.dataDir}\\${file}`), new Uint8Array(20_000));
    await node.start({}, { hnsTimeoutMs: 4_000 });
    // The lease comes back from what HNS has, and nobody else gets its address.
    expect(await added("b", node.stubs.hns.newNamespace())).not.toBe(first);
    expect(await added("a")).toBe(first);
    for (const id of ["a", "b"]) await deleted(id, "");
    await isClean();
  });

  test("peers 10: calls of HNS that never return freeze neither the agent nor a DEL", async () => {
    await added("a");
    {
      // The agent gives each of them up, and tries again.
      using hang = node.stubs.hns.fault({ call: "HcnDeleteEndpoint", times: 20, holdMs: "until released" });
      await deleted("a");
      await hang.hit();
      const status = ["status", "--socket", node.socket];
      const answered = () => node.prefix.run(`${node.executables}/pipette.exe`, { args: status });
      await expect.poll(async () => (await answered()).stdout).toContain("attachments being taken away 1");
      const other = node.stubs.hns.newNamespace();
      await added("b", other);
      await deleted("b", other);
    }
    await isClean();
  });

  test("peers 12: an endpoint in the all-zero namespace, or in one that is gone, goes; so does that of half an ADD", async () => {
    await added("a");
    for (const document of node.stubs.hns.store.endpoints.values())
      document["HostComputeNamespace"] = "00000000-0000-0000-0000-000000000000";
    await deleted("a");
    await isClean();

    const gone = node.stubs.hns.newNamespace();
    await added("a", gone);
    node.stubs.hns.store.namespaces.delete(gone.toUpperCase());
    await deleted("a", gone);
    await isClean();

    const half = node.stubs.hns.newNamespace();
    {
      using hang = node.stubs.hns.fault({ call: "HcnModifyNamespace", times: 1, holdMs: "until released" });
      const plugin = node.startPlugin("ADD", "a", { netns: half });
      await hang.hit();
      plugin.kill("SIGKILL");
      await deleted("a", half);
      await plugin.ended;
    }
    await isClean();
  });

  test("peers 20: after a crash of HNS without network and endpoints both are there again, and no pod has to ask", async () => {
    const address = await added("a");
    const [before] = node.endpoints();
    const { hns } = node.stubs;
    hns.isAway = true;
    hns.restart();
    hns.store.networks.clear();
    expect(await node.cni("ADD", "b", { netns: hns.newNamespace() })).toMatchObject({ t: "error", code: 11 });
    await deleted("b", "");
    hns.isAway = false;
    await expect.poll(() => node.endpoints().flatMap(addressesOf), { timeout: 40_000 }).toEqual([address]);
    await expect.poll(() => node.endpoints()[0]?.["HostComputeNamespace"]).toBe(netns.toUpperCase());
    expect(node.endpoints()[0]?.["MacAddress"]).toBe(before?.["MacAddress"]);
    expect(await node.disagreements()).toEqual([]);
    await deleted("a");
    await isClean();
  });
});

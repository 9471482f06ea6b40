import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { GrpcCode, IpamClient } from "../../ipam/service/ipam-client.ts";
import { AgentHome, bridgeName, eventually, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

describeWith("the allocator's service on the agent's socket", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let client: IpamClient;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-is-");
  });
  beforeEach(async () => {
    home = new AgentHome();
    await home.start();
    client = new IpamClient(home.socket);
  });
  afterEach(async () => {
    client[Symbol.dispose]();
    await home[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  const attachment = (containerId: string) => ({ network: networkName, containerId, ifname: "eth0" });
  const configuration = { cniVersion: "1.1.0", name: networkName };
  const states = async (containerId: string): Promise<readonly string[]> => {
    const found: string[] = [];
    for await (const lease of client.list(networkName)) if (lease.containerId === containerId) found.push(lease.state);
    return found;
  };

  test("gives out the agent's own ranges, counts them, and tells its health", async () => {
    const { leases, result } = await client.allocate({ ...attachment("plain"), configuration });
    expect(leases.map(({ address }) => address)).toEqual(["10.78.0.2/16", "fd78::2/64"]);
    expect(result).toMatchObject({ routes: [{ dst: "0.0.0.0/0" }, { dst: "::/0" }] });
    expect(await client.serving()).toBe(true);
    expect(await client.stats(networkName)).toMatchObject([
      { allocated: 2, ranges: [{ total: "65533", used: 1, free: "65532" }, { used: 1 }] },
    ]);
    expect(await client.check()).toEqual([]);
    const unknown = client.allocate({ ...attachment("x"), configuration: { ...configuration, name: "other" } });
    await expect(unknown).rejects.toMatchObject({
      grpcCode: GrpcCode.invalidArgument,
      message: expect.stringContaining(`the server has ranges for "${networkName}"`),
    });
    // No interface stands on it, so it cools at once.
    expect((await client.release(attachment("plain"))).map(({ state }) => state)).toEqual(["cooling", "cooling"]);
  });

  test("a release of a wired pod takes its interface away before its addresses cool", async () => {
    const netns = await sandbox.addPod("wired");
    const added = resultOf(await home.cmd("cmdAdd", "wired", { netns }));
    const held = await client.get(attachment("wired"));
    expect(held.map(({ address }) => address)).toEqual(added.ips.map(({ address }) => address));
    expect(await home.containers()).toEqual(["wired"]);
    expect((await client.release(attachment("wired"))).map(({ state }) => state)).toEqual(["releasing", "releasing"]);
    await eventually(async () => (await states("wired")).every((state) => state === "cooling"), "cooling addresses");
    expect(await home.containers()).toEqual([]);
    await sandbox.removePod(netns);
  });

  test("its GC takes away interfaces and addresses, but for what is to stay", async () => {
    const pods = await Promise.all(["goes", "stays"].map((name) => sandbox.addPod(name)));
    for (const [i, id] of ["goes", "stays"].entries()) resultOf(await home.cmd("cmdAdd", id, { netns: pods[i] ?? "" }));
    const { removed, failures } = await client.gc(networkName, [attachment("stays")]);
    expect([removed, failures]).toEqual([[{ containerId: "goes", ifname: "eth0" }], []]);
    expect(await home.containers()).toEqual(["stays"]);
    expect([await states("goes"), await states("stays")]).toEqual([
      ["cooling", "cooling"],
      ["allocated", "allocated"],
    ]);
    for (const pod of pods) await sandbox.removePod(pod);
  });
});

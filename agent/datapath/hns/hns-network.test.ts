import { describe, expect, test } from "vitest";
import { CniError } from "../../../shared/errors.ts";
import { hnsNode, namespaceA, ownerOf, requestFor } from "../../../test/fakes/hns/hns-node.ts";

const networkId = "0e7e0e7e-0000-4000-8000-00000000000a";
const until = async (done: () => Promise<boolean>): Promise<void> => {
  for (let i = 0; i < 100 && !(await done()); i++) await Bun.sleep(10);
  expect(await done()).toBe(true);
};

describe("the HNS network", () => {
  test("of type Transparent is made through V1, on the adapter that holds the node's address, then found", async () => {
    await using hns = hnsNode();
    await hns.dataPath.start();
    const made = hns.fake.service.calls.filter(({ fn, texts: [method] }) => fn === "HNSCall" && method === "POST");
    expect(made.map(({ texts: [, path, body] }) => [path, JSON.parse(body ?? "")])).toEqual([
      [
        "/networks/",
        {
          Name: "pipette",
          Type: "Transparent",
          NetworkAdapterName: "Ethernet0",
          SourceMac: "00:15:5d:01:02:03",
          Subnets: [{ AddressPrefix: "10.9.0.0/24", GatewayAddress: "10.9.0.1" }],
          ManagementIP: "192.168.1.5/24",
        },
      ],
    ]);
    expect(hns.node.calls).toEqual(["prepare", "setUp"]);
    await hns.again().start();
    expect([hns.fake.networks.length, hns.node.calls.slice(2)]).toEqual([1, ["setUp"]]);
  });

  test("of type L2Bridge is made through V2", async () => {
    await using hns = hnsNode({ type: "L2Bridge" });
    await hns.dataPath.start();
    expect(hns.fake.networks).toMatchObject([
      {
        Type: "L2Bridge",
        Flags: 8,
        Policies: [{ Type: "NetAdapterName", Settings: { NetworkAdapterName: "Ethernet0" } }],
        Ipams: [
          {
            Type: "Static",
            Subnets: [
              { IpAddressPrefix: "10.9.0.0/24", Routes: [{ NextHop: "10.9.0.1", DestinationPrefix: "0.0.0.0/0" }] },
            ],
          },
        ],
      },
    ]);
  });

  test("of type Overlay has its VSID and the host's route, and each endpoint the node's address and a MAC of its own", async () => {
    await using hns = hnsNode({ type: "Overlay", vsid: 4096 });
    await hns.dataPath.start();
    expect(hns.fake.networks).toMatchObject([
      {
        Ipams: [{ Subnets: [{ Policies: [{ Type: "VSID", Settings: { IsolationId: 4096 } }] }] }],
        Policies: [{ Type: "NetAdapterName" }, { Type: "HostRoute" }],
      },
    ]);
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    expect(hns.fake.endpoints).toMatchObject([
      {
        MacAddress: "0E-2A-0A-09-00-07",
        Policies: [{ Type: "ProviderAddress", Settings: { ProviderAddress: "192.168.1.5" } }],
      },
    ]);
  });

  test.each([
    ["type", { Type: "L2Bridge" }, 'its type is "L2Bridge", wanted "Transparent"'],
    ["subnet", { Subnets: [{ AddressPrefix: "10.8.0.0/24" }] }, 'its subnet is "10.8.0.0/24", wanted "10.9.0.0/24"'],
  ])("of our name and another %s is not taken over", async (_what, document, part) => {
    await using hns = hnsNode();
    hns.fake.put("network", networkId, { Name: "pipette", ...document });
    await expect(hns.dataPath.start()).rejects.toMatchObject({ code: 102, message: expect.stringContaining(part) });
    expect(hns.fake.networks).toEqual([{ ID: networkId.toUpperCase(), Name: "pipette", ...document }]);
  });

  test("that the node cannot be set up around goes again, one that stood before stays", async () => {
    await using hns = hnsNode();
    hns.node.failing = new CniError(102, "Cannot set up: refused");
    await expect(hns.dataPath.start()).rejects.toThrow("refused");
    expect([hns.fake.networks.length, hns.node.calls]).toEqual([0, ["prepare", "setUp", "handBack pods"]]);
    hns.node.failing = undefined;
    await hns.dataPath.start();
    hns.node.failing = new CniError(102, "Cannot set up: refused");
    await expect(hns.again().start()).rejects.toThrow("refused");
    expect(hns.fake.networks.length).toBe(1);
  });

  test("whose creation was given up is found by the next start", async () => {
    await using hns = hnsNode();
    hns.fake.hang("hnsCall", "taking effect");
    await expect(hns.dataPath.start()).rejects.toMatchObject({ code: 11 });
    await hns.dataPath.start();
    expect(hns.fake.networks.length).toBe(1);
  });
});

describe("HNS that goes away", () => {
  test("is a problem, and ADD is for later, until a start has found it again", async () => {
    await using hns = hnsNode();
    const { dataPath, fake } = hns;
    await expect(dataPath.attach(requestFor("a", namespaceA, 7))).rejects.toMatchObject({ code: 11 });
    await dataPath.start();
    expect(await dataPath.problems()).toEqual([]);
    fake.service.isAway = true;
    await until(async () => (await dataPath.problems()).length === 1);
    expect(await dataPath.problems()).toMatchObject([{ code: 50, message: expect.stringContaining("RPC_S_SERVER") }]);
    fake.service.isAway = false;
    await until(async () => (await dataPath.problems()).length === 0);
  });

  test("with its network: seen by the listing, ADD for later, made again by the next start, pods again by their ADD", async () => {
    await using hns = hnsNode();
    const { dataPath, fake } = hns;
    await dataPath.start();
    await dataPath.attach(requestFor("a", namespaceA, 7));
    fake.service.restart();
    fake.service.store.networks.clear();
    await until(async () => (await dataPath.problems()).length === 1);
    expect(await dataPath.problems()).toMatchObject([{ code: 50, message: expect.stringContaining("has gone") }]);
    await expect(dataPath.attach(requestFor("a", namespaceA, 7))).rejects.toMatchObject({ code: 11 });
    await dataPath.start();
    expect(await dataPath.problems()).toEqual([]);
    await dataPath.attach(requestFor("a", namespaceA, 7));
    expect(await dataPath.list()).toMatchObject([{ owner: ownerOf("a") }]);
  });

  test("answers no question, each of which is for later", async () => {
    await using hns = hnsNode();
    const { dataPath, fake } = hns;
    await dataPath.start();
    const result = await dataPath.attach(requestFor("a", namespaceA, 7));
    fake.service.isAway = true;
    const own = { owner: ownerOf("a"), ownLease: true };
    for (const [action, answer] of [
      ["list the endpoints", dataPath.list()],
      ["read the addresses", dataPath.addresses(ownerOf("a"))],
      ["check", dataPath.check(ownerOf("a"), namespaceA, result)],
      ["detach", dataPath.detach(ownerOf("a"))],
      ["make the endpoint", dataPath.remake?.(own, undefined)],
    ] as const)
      await expect(answer, action).rejects.toMatchObject({
        code: 11,
        message: expect.stringMatching(`^Cannot ${action}.*: HNS could not`),
      });
  });

  test("with its network is seen by the ADD that comes first", async () => {
    await using hns = hnsNode();
    await hns.dataPath.start();
    hns.fake.service.store.networks.clear();
    const problem = { code: 11, message: expect.stringContaining('the HNS network "pipette" has gone') };
    await expect(hns.dataPath.attach(requestFor("a", namespaceA, 7))).rejects.toMatchObject(problem);
    expect(await hns.dataPath.problems()).toHaveLength(1);
  });

  test("a record that cannot be read is passed over", async () => {
    await using hns = hnsNode();
    await Bun.write(`${hns.dataDir}/hns/${networkId}.json`, '{"owner":');
    const again = hns.again();
    await again.start();
    expect(await again.list()).toEqual([]);
  });
});

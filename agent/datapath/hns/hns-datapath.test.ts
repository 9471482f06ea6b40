import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { formatIp } from "../../../shared/net/ip.ts";
import type { HcnCallName } from "../../../test/fakes/hns/fake-hns.ts";
import {
  type HnsNode,
  hnsNode,
  joining,
  namespaceA,
  namespaceB,
  ownerOf,
  requestFor,
} from "../../../test/fakes/hns/hns-node.ts";
import type { HcnDocument } from "../../protocols/hcn/mod.ts";
import { endpointId } from "./endpoint-records.ts";

let hns: HnsNode;

beforeEach(() => {
  hns = hnsNode();
});
afterEach(() => hns[Symbol.asyncDispose]());

/** The calls of HNS that `run` makes. */
async function callsOf(run: () => Promise<unknown>): Promise<readonly string[]> {
  const before = hns.fake.calls.length;
  await run().catch(() => undefined);
  return hns.fake.calls.slice(before);
}

const id = endpointId(ownerOf("a"));
/** As a creation that was given up and comes true. */
async function makeLate(settings: HcnDocument): Promise<void> {
  const [network] = await hns.fake.hcn.networks();
  await hns.fake.hcn.createEndpoint(network?.id ?? "", id, { Name: "late", ...settings });
}
const documents = (): number => hns.fake.endpoints.length;
const until = async (done: () => boolean): Promise<void> => {
  for (let i = 0; i < 100 && !done(); i++) await Bun.sleep(10);
  expect(done()).toBe(true);
};

describe("a sandbox", () => {
  beforeEach(() => hns.dataPath.start());

  test("gets an endpoint with its address, gateway and DNS, in its namespace", async () => {
    const dns = { nameservers: ["10.96.0.10"], search: ["a.local", "b.local"], options: ["ndots:5"] };
    const result = await hns.dataPath.attach({
      ...requestFor("a", namespaceA, 7, dns),
      pod: { namespace: "default", name: "web", uid: "" },
      mac: "02:00:5e:10:00:01",
    });
    expect(result).toMatchObject({
      interfaces: [
        { name: expect.stringMatching(/^web-[a-z0-9]{6}$/), mac: "02:00:5e:10:00:01" },
        { name: "eth0", mac: "02:00:5e:10:00:01", sandbox: namespaceA },
      ],
      ips: [{ interface: 1 }],
      dns,
    });
    expect(hns.fake.endpoint(id)).toMatchObject({
      Name: result.interfaces[0]?.name,
      MacAddress: "02-00-5E-10-00-01",
      IpConfigurations: [{ IpAddress: "10.9.0.7", PrefixLength: 24 }],
      Routes: [{ NextHop: "10.9.0.1", DestinationPrefix: "0.0.0.0/0" }],
      Dns: { Search: ["a.local", "b.local"], ServerList: ["10.96.0.10"], Options: ["ndots:5"] },
      SchemaVersion: { Major: 2, Minor: 0 },
    });
    expect(hns.fake.endpointsIn(namespaceA)).toEqual([id]);
  });

  test("again gets the same after a look and nothing else, from another process too", async () => {
    const first = await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    expect(await callsOf(() => hns.dataPath.attach(requestFor("a", namespaceA, 7)))).toEqual([`endpoint ${id}`]);
    expect(await hns.dataPath.attach(requestFor("a", namespaceA, 7))).toEqual(first);
    const other = hns.again();
    await other.start();
    expect(await other.attach(requestFor("a", namespaceA, 7))).toEqual(first);
    expect(await other.list()).toEqual([
      { owner: ownerOf("a"), ownLease: true, hostIfname: first.interfaces[0]?.name },
    ]);
    expect(documents()).toBe(1);
  });

  test("that comes again in another namespace, or with another address, has the endpoint of the new life", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    await hns.dataPath.attach(requestFor("a", namespaceB, 7));
    expect(hns.fake.endpointsIn(namespaceA)).toEqual([]);
    expect(hns.fake.endpointsIn(namespaceB)).toEqual([id]);
    await hns.dataPath.attach(requestFor("a", namespaceB, 8));
    expect(hns.fake.endpoint(id)).toMatchObject({ IpConfigurations: [{ IpAddress: "10.9.0.8" }] });
    expect(documents()).toBe(1);
  });

  test("whose namespace is gone is refused with code 4", async () => {
    const gone = "11111111-0000-4000-8000-000000000009";
    await expect(hns.dataPath.attach(requestFor("a", gone, 7))).rejects.toMatchObject({
      code: 4,
      message: `Cannot enter the sandbox: HNS has no namespace "${gone}", wanted the one that CNI_NETNS names`,
    });
  });

  test("that HNS refuses while its namespace stands is not told that the namespace is gone", async () => {
    hns.fake.fail("attach", 0x80070490);
    const error = await hns.dataPath.attach(requestFor("a", namespaceA, 7)).catch((caught: unknown) => caught);
    expect(error).toMatchObject({
      code: 102,
      message: expect.stringMatching(/^Cannot .*: HNS could not [^,]*$/),
    });
  });

  test("is checked by its own interface, whatever others of the result are called", async () => {
    const result = await hns.dataPath.attach({ ...requestFor("a", namespaceA, 7), mac: "02:00:5e:10:00:01" });
    // As a plugin before ours may name the node's end, and one behind it another interface of the sandbox.
    const others = [
      { name: "eth0", mac: "02:00:5e:10:00:99" },
      { name: "net1", mac: "02:00:5e:10:00:98", sandbox: namespaceA },
    ];
    const [, own] = result.interfaces;
    if (own === undefined) throw new Error("The result names no interface of the sandbox");
    const ip = (host: number, at: number) => ({ ...requestFor("a", namespaceA, host).ipam.ips[0]!, interface: at });
    const check = (...ips: ReturnType<typeof ip>[]) =>
      hns.dataPath.check(ownerOf("a"), namespaceA, { ...result, interfaces: [...others, own], ips });
    await check(ip(7, 2), ip(99, 1));
    await expect(check(ip(8, 2))).rejects.toMatchObject({ code: 103 });
  });

  test("is not given an endpoint of somebody else that has its name", async () => {
    const { interfaces } = await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    await hns.dataPath.detach(ownerOf("a"));
    const foreign = "99999999-0000-4000-8000-000000000001";
    hns.fake.put("endpoint", foreign, { Name: interfaces[0]?.name });
    await hns.dataPath.list();
    await expect(hns.dataPath.attach(requestFor("a", namespaceA, 7))).rejects.toMatchObject({ code: 102 });
    expect(hns.fake.endpoints).toMatchObject([{ ID: foreign }]);
  });

  test("can be checked, and the first difference is named", async () => {
    const result = await hns.dataPath.attach({ ...requestFor("a", namespaceA, 7), mac: "02:00:5e:10:00:01" });
    const { dataPath } = hns;
    await dataPath.check(ownerOf("a"), namespaceA, result);
    await dataPath.check(ownerOf("a"), "container:a", result);
    const differs = (netns: string, prev = result) =>
      dataPath.check(ownerOf("a"), netns, prev).then(
        () => "",
        ({ code, message }) => `${code} ${message}`,
      );
    expect(await differs(namespaceB)).toContain(`103 Cannot confirm the attachment: the endpoint`);
    const ips = [{ ...result.ips[0], address: requestFor("a", namespaceA, 8).ipam.ips[0]?.address }];
    expect(await differs(namespaceA, { ...result, ips: ips as typeof result.ips })).toContain('wanted "10.9.0.8/24"');
    const interfaces = result.interfaces.map((one) => ({ ...one, mac: "02:00:5e:10:00:02" }));
    expect(await differs(namespaceA, { ...result, interfaces })).toContain('wanted "02:00:5e:10:00:02"');
    await dataPath.detach(ownerOf("a"));
    expect(await differs(namespaceA)).toContain("missing in HNS");
  });
});

describe("containers that share an endpoint", () => {
  beforeEach(() => hns.dataPath.start());

  test("in a namespace have nothing to do", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    const join = joining(requestFor("a", namespaceA, 7), "w");
    expect(await callsOf(() => hns.dataPath.attach(join))).toEqual([`endpoint ${id}`]);
    expect((await hns.dataPath.attach(join)).interfaces[1]?.sandbox).toBe("container:a");
  });

  test("without a namespace join it by their ids, each once", async () => {
    const sandbox = requestFor("a", "none", 7);
    const joins = (request: typeof sandbox) => callsOf(() => hns.dataPath.attach(request));
    expect((await joins(sandbox)).slice(-2)).toEqual([
      `hnsCall GET /endpoints/${id}`,
      `hnsCall POST /endpoints/${id}/attach`,
    ]);
    for (const container of ["w", "x"]) expect((await joins(joining(sandbox, container))).at(-1)).toContain("/attach");
    const look = [`endpoint ${id}`, `hnsCall GET /endpoints/${id}`];
    expect(await joins(sandbox)).toEqual(look);
    expect(await joins(joining(sandbox, "w"))).toEqual(look);
  });

  test("that HNS has joined already are taken for joined, and what it refuses otherwise is refused", async () => {
    const sandbox = requestFor("a", "none", 7);
    const first = await hns.dataPath.attach(sandbox);
    const answering = (hresult: number) => hns.fake.service.fault({ call: "HNSCall", match: "/attach", hresult });
    using attached = answering(0x803b0014);
    const joins = joining(sandbox, "w");
    expect((await callsOf(() => hns.dataPath.attach(joins))).at(-1)).toBe(`hnsCall POST /endpoints/${id}/attach`);
    expect((await hns.dataPath.attach(joins)).ips).toEqual(first.ips);
    attached[Symbol.dispose]();
    using _refused = answering(0x80004005);
    await expect(hns.dataPath.attach(joins)).rejects.toMatchObject({ code: 102 });
  });
});

describe("detach", () => {
  beforeEach(() => hns.dataPath.start());

  test("leaves nothing, and of nothing is the same", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    for (let i = 0; i < 2; i++) await hns.dataPath.detach(ownerOf("a"));
    expect([documents(), await hns.dataPath.list(), hns.dataPath.addressesInUse(ownerOf("b"))]).toEqual([0, [], []]);
    expect(hns.fake.endpointsIn(namespaceA).length).toBe(0);
  });

  test("does not need the namespace, nor to leave it", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    hns.fake.fail("detach", 0x80070490);
    await hns.dataPath.detach(ownerOf("a"));
    expect(documents()).toBe(0);
  });

  test("answers only when HNS does not list the endpoint any more", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    // HNS says that it has deleted it.
    const pretending = hns.fake.service.fault({ call: "HcnDeleteEndpoint", pretends: true });
    await expect(hns.dataPath.detach(ownerOf("a"))).rejects.toMatchObject({ code: 11 });
    expect(hns.dataPath.addressesInUse(ownerOf("b")).map(formatIp)).toEqual(["10.9.0.7"]);
    pretending[Symbol.dispose]();
    await hns.dataPath.detach(ownerOf("a"));
    expect(hns.dataPath.addressesInUse(ownerOf("b"))).toEqual([]);
  });

  test.each([
    ["endpoint", 0x800706ba, 11],
    ["detach", 0x800706ba, 11],
    ["deleteEndpoint", 0x800706ba, 11],
    ["deleteEndpoint", 0x80004005, 102],
  ] as const)("fails for now where %s answers %s, without the words that mean success", async (call, hresult, code) => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    hns.fake.fail(call, hresult);
    const error = await hns.dataPath.detach(ownerOf("a")).catch((caught: unknown) => caught);
    expect(error).toMatchObject({ code, message: expect.not.stringMatching(/not found/i) });
    await hns.dataPath.detach(ownerOf("a"));
    expect(documents()).toBe(0);
  });

  test.each(["endpoint", "detach", "deleteEndpoint"] as const)("fails for now where %s hangs", async (call) => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    hns.fake.hang(call);
    await expect(hns.dataPath.detach(ownerOf("a"))).rejects.toMatchObject({ code: 11 });
    await hns.dataPath.detach(ownerOf("a"));
    expect(documents()).toBe(0);
  });
});

describe("an attach that is given up", () => {
  beforeEach(() => hns.dataPath.start());

  test.each<HcnCallName>(["endpoint", "createEndpoint", "attach"])(
    "at %s is for now, and the next one is whole",
    async (call) => {
      hns.fake.hang(call);
      await expect(hns.dataPath.attach(requestFor("a", namespaceA, 7))).rejects.toMatchObject({ code: 11 });
      await hns.dataPath.attach(requestFor("a", namespaceA, 7));
      expect([documents(), hns.fake.endpointsIn(namespaceA).length]).toEqual([1, 1]);
    },
  );

  test("and takes effect all the same is found by the next", async () => {
    hns.fake.hang("createEndpoint", "taking effect");
    await expect(hns.dataPath.attach(requestFor("a", namespaceA, 7))).rejects.toMatchObject({ code: 11 });
    const calls = await callsOf(() => hns.dataPath.attach(requestFor("a", namespaceA, 7)));
    expect(calls).toEqual([`endpoint ${id}`, `attach ${id}`]);
  });

  test("and takes effect between the look and the next creation is taken for that", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    const late = hns.fake.endpoint(id) ?? {};
    await hns.dataPath.detach(ownerOf("a"));
    using _coming = hns.fake.before("createEndpoint", () => hns.fake.put("endpoint", id, late));
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    expect(documents()).toBe(1);
  });

  test("and takes effect with addresses that have been given away since is not taken for that, but replaced by the next", async () => {
    await hns.dataPath.attach(requestFor("a", namespaceA, 7));
    const late = hns.fake.endpoint(id) ?? {};
    await hns.dataPath.detach(ownerOf("a"));
    using coming = hns.fake.before("createEndpoint", () => hns.fake.put("endpoint", id, late));
    await expect(hns.dataPath.attach(requestFor("a", namespaceA, 8))).rejects.toMatchObject({ code: 11 });
    coming[Symbol.dispose]();
    await hns.dataPath.attach(requestFor("a", namespaceA, 8));
    expect(hns.fake.endpoint(id)).toMatchObject({ IpConfigurations: [{ IpAddress: "10.9.0.8" }] });
    expect(documents()).toBe(1);
  });

  test("and takes effect after everything was taken back is found by the listing, reported, and its address withheld", async () => {
    hns.fake.hang("createEndpoint");
    await hns.dataPath.attach(requestFor("a", namespaceA, 7)).catch(() => undefined);
    await hns.dataPath.detach(ownerOf("a"));
    expect(hns.leftovers).toEqual([]);
    await makeLate({ IpConfigurations: [{ IpAddress: "10.9.0.7" }] });
    await until(() => hns.leftovers.length > 0);
    expect(hns.leftovers[0]).toEqual(ownerOf("a"));
    expect(hns.dataPath.addressesInUse(ownerOf("b")).map(formatIp)).toEqual(["10.9.0.7"]);
    await hns.dataPath.detach(ownerOf("a"));
    expect([documents(), await hns.dataPath.list()]).toEqual([0, []]);
  });

  test("by an agent that ended over it is found by the next agent", async () => {
    const ending = hns.fake.before("createEndpoint", () => {
      throw new Error("the process ends here");
    });
    await hns.dataPath.attach(requestFor("a", namespaceA, 7)).catch(() => undefined);
    ending[Symbol.dispose]();
    const next = hns.again();
    await next.start();
    expect(await next.list()).toEqual([]);
    await makeLate({});
    await until(() => hns.leftovers.length > 0);
    expect(await next.list()).toMatchObject([{ owner: ownerOf("a"), hostIfname: "late" }]);
  });
});

describe("addresses that others hold", () => {
  test("are known after a listing, made now and then and not for each pod", async () => {
    await hns.dataPath.start();
    const other = "99999999-0000-4000-8000-000000000001";
    hns.fake.put("endpoint", other, { Name: "theirs", IPAddress: "10.9.0.3" });
    expect(await callsOf(() => hns.dataPath.attach(requestFor("a", namespaceA, 7)))).toEqual([
      `endpoint ${id}`,
      `createEndpoint ${id}`,
      `attach ${id}`,
    ]);
    await until(() => hns.dataPath.addressesInUse(ownerOf("b")).length === 2);
    expect(hns.dataPath.addressesInUse(ownerOf("b")).map(formatIp).sort()).toEqual(["10.9.0.3", "10.9.0.7"]);
    expect(hns.dataPath.addressesInUse(ownerOf("a")).map(formatIp)).toEqual(["10.9.0.3"]);
  });

  test("are looked up as seldom as that takes long: HNS has other work", async () => {
    const lookMs = 40;
    using _ = hns.fake.service.fault({ call: "HcnEnumerateEndpoints", meanwhile: () => Bun.sleepSync(lookMs) });
    await hns.dataPath.start();
    const [beganMs, before] = [performance.now(), hns.fake.service.count("HcnEnumerateEndpoints")];
    const looks = () => hns.fake.service.count("HcnEnumerateEndpoints") - before;
    await expect.poll(looks, { timeout: 30_000 }).toBeGreaterThanOrEqual(3);
    // Three looks, and two rests of four times as long between them.
    expect(performance.now() - beganMs).toBeGreaterThan(3 * lookMs + 2 * 4 * lookMs);
  });
});

import { unlinkSync, writeFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { ipamService } from "../../shared/proto/daemon-services.ts";
import { callUnary } from "../../shared/rpc/call.ts";
import { GrpcCode } from "../../shared/rpc/rpc-error.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { Running } from "../../shared/server/daemon.ts";
import { openSystem } from "../../shared/server/open-system.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { parseIpamConfig } from "../config/ipam-config.ts";
import { IpamClient } from "./ipam-client.ts";
import { ipamRpcs } from "./ipam-rpcs.ts";
import { startIpamServer } from "./ipam-server.ts";

const ranges = [[{ subnet: "10.5.0.0/29" }]];
const configuration = { cniVersion: "1.1.0", name: "net", ipam: { ranges, routes: [{ dst: "0.0.0.0/0" }] } };
const attachment = (containerId: string, network = "net") => ({ network, containerId, ifname: "eth0" });

let scratch: ReturnType<typeof scratchDir>;
let server: Running;
let client: IpamClient;
let lines: string[];

beforeEach(async () => {
  scratch = scratchDir();
  lines = [];
  const sections = new Map([["known", { ranges: [[{ subnet: "10.6.0.0/29" }], [{ subnet: "fd06::/64" }]] }]]);
  const config = { socket: `${scratch.path}/run/s`, dataDir: scratch.path, sections };
  const logger = createLogger("info", (line) => lines.push(line));
  server = await startIpamServer(config, logger, await openSystem());
  client = new IpamClient(config.socket);
});
afterEach(async () => {
  client[Symbol.dispose]();
  await server.stop();
  scratch[Symbol.dispose]();
});

const allocate = (containerId: string, more: object = {}) =>
  client.allocate({ ...attachment(containerId), configuration: { ...configuration, ...more } });

async function listed(network?: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const lease of client.list(network)) found.push(`${lease.network} ${lease.address} ${lease.state}`);
  return found;
}

describe("the allocator's service", () => {
  test("says that it serves", async () => {
    expect(await client.serving()).toBe(true);
  });

  test("allocates once for each attachment, in the shapes of a CNI result and of leases", async () => {
    const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u1";
    const first = await client.allocate({ ...attachment("a"), configuration, args });
    expect(first.result).toMatchObject({
      cniVersion: "1.1.0",
      ips: [{ address: "10.5.0.2/29", gateway: "10.5.0.1" }],
      routes: [{ dst: "0.0.0.0/0" }],
    });
    expect(first.leases).toEqual([
      {
        ...attachment("a"),
        address: "10.5.0.2/29",
        gateway: "10.5.0.1",
        state: "allocated",
        podNamespace: "default",
        podName: "web",
        podUid: "u1",
        generation: 1,
        allocatedAtMs: expect.any(Number),
        releasedAtMs: 0,
      },
    ]);
    expect(await client.allocate({ ...attachment("a"), configuration, args })).toEqual(first);
    expect(await client.get(attachment("a"))).toEqual(first.leases);
    expect((await allocate("b", { cniVersion: "0.2.0" })).result).toMatchObject({ ip4: { ip: "10.5.0.3/29" } });
    const [line] = lines.map((text) => JSON.parse(text)).filter((entry) => entry.rpc === "Allocate");
    expect(line).toMatchObject({ message: "served", container: "a", leases: 1, request: expect.any(String) });
  });

  test("releases, and finds nothing to release where there is nothing", async () => {
    await allocate("a");
    expect(await client.release(attachment("a"))).toMatchObject([{ address: "10.5.0.2/29", state: "cooling" }]);
    expect(await client.release(attachment("a"))).toEqual([]);
    expect(await client.get(attachment("a"))).toEqual([]);
    expect(await listed()).toEqual(["net 10.5.0.2/29 cooling"]);
  });

  test("lists one network or all", async () => {
    await allocate("a");
    await client.allocate({ ...attachment("b"), configuration: { cniVersion: "1.1.0", name: "known" } });
    expect(await listed("known")).toEqual(["known 10.6.0.2/29 allocated", "known fd06::2/64 allocated"]);
    expect(await listed()).toHaveLength(3);
    expect(await listed("other")).toEqual([]);
  });

  test("runs GC by what is to stay, which may be nothing but must be said", async () => {
    for (const id of ["a", "b", "c"]) await allocate(id);
    const gone = await client.gc("net", [attachment("b")]);
    expect(gone.failures).toEqual([]);
    expect(gone.removed.map(({ containerId }) => containerId).sort()).toEqual(["a", "c"]);
    expect(await client.get(attachment("b"))).toHaveLength(1);
    expect((await client.gc("net", [])).removed).toEqual([{ containerId: "b", ifname: "eth0" }]);
  });

  test("looks through the database", async () => {
    await allocate("a");
    expect(await client.check()).toEqual([]);
    using db = new DatabaseSync(`${scratch.path}/leases.db`);
    db.exec("DELETE FROM taken");
    expect(await client.check()).toEqual([
      {
        severity: "error",
        code: "taken-run-missing",
        network: "net",
        what: '"10.5.0.2" has leases and is not noted as taken',
        why: expect.any(String),
        todo: expect.stringContaining("pipette ipam check --repair"),
        repairable: true,
      },
    ]);
  });

  test("counts: by state, and against the ranges that it knows", async () => {
    for (const id of ["a", "b"]) await allocate(id);
    await client.release(attachment("a"));
    await client.allocate({ ...attachment("c"), configuration: { cniVersion: "1.1.0", name: "known" } });
    expect(await client.stats()).toEqual([
      {
        network: "known",
        allocated: 2,
        releasing: 0,
        cooling: 0,
        ranges: [
          { range: "10.6.0.1-10.6.0.6", total: "5", used: 1, cooling: 0, free: "4" },
          {
            range: "fd06::1-fd06::ffff:ffff:ffff:ffff",
            total: String(2n ** 64n - 2n),
            used: 1,
            cooling: 0,
            free: String(2n ** 64n - 3n),
          },
        ],
      },
      { network: "net", allocated: 1, releasing: 0, cooling: 1, ranges: [] },
    ]);
    expect(await client.stats("other")).toEqual([]);
  });

  test("takes ranges from the configuration, else from its own, else from the network's settings file", async () => {
    const named = (name: string) => ({ ...attachment(name), configuration: { cniVersion: "1.1.0", name } });
    expect((await client.allocate(named("known"))).leases[0]?.address).toBe("10.6.0.2/29");
    await expect(client.allocate(named("filed"))).rejects.toMatchObject({
      grpcCode: GrpcCode.invalidArgument,
      message: expect.stringContaining(
        'Cannot allocate for network "filed": its configuration has no "ipam" section and the server no ranges for it, wanted one of the two; the server has ranges for "known"',
      ),
    });
    writeFileSync(`${scratch.path}/filed.json`, JSON.stringify({ subnet: "10.7.0.0/24" }), { mode: 0o600 });
    expect((await client.allocate(named("filed"))).leases[0]?.address).toBe("10.7.0.2/24");
    expect(await client.stats("filed")).toMatchObject([{ allocated: 1, ranges: [{ total: "253", free: "252" }] }]);
    expect(
      (
        await client.allocate({
          ...named("known"),
          configuration: { ...configuration, name: "known" },
          containerId: "x",
        })
      ).leases[0]?.address,
    ).toBe("10.5.0.2/29");
  });

  test("writes where others of the same data directory read, and the other way round", async () => {
    await allocate("a");
    using other = await Allocator.open(scratch.path);
    const owner = (sandboxId: string) => ({ network: "net", sandboxId, ifname: "eth0" });
    expect(other.find(owner("a"))).toHaveLength(1);
    const conf = new Fields(configuration);
    other.allocate(owner("z"), parseIpamConfig({ conf, network: "net", version: "1.1.0", args: "" }));
    expect(await client.get(attachment("z"))).toMatchObject([{ address: "10.5.0.3/29" }]);
  });

  test("gives failures the words that a plugin gives them", async () => {
    const owner = (sandboxId: string) => ({ network: "net", sandboxId, ifname: "eth0" });
    const config = parseIpamConfig({ conf: new Fields(configuration), network: "net", version: "1.1.0", args: "" });
    using other = await Allocator.open(scratch.path);
    for (let i = 0; i < 5; i++) other.allocate(owner(`full-${i}`), config);
    const said = (work: () => unknown): string => {
      try {
        work();
      } catch (caught) {
        return (caught as Error).message;
      }
      throw new Error("It must fail");
    };
    const message = said(() => other.allocate(owner("one-more"), config));
    await expect(allocate("one-more")).rejects.toMatchObject({
      grpcCode: GrpcCode.resourceExhausted,
      message: expect.stringContaining(message),
    });
    await expect(allocate("x", { runtimeConfig: { ips: ["10.5.0.2"] } })).rejects.toMatchObject({
      grpcCode: GrpcCode.resourceExhausted,
      message: expect.stringContaining('the requested address is taken: "10.5.0.2", allocated, sandbox "full-0"'),
    });
  });
});

describe("what a request of the service may not say", () => {
  const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
  const good = {
    containerId: "a",
    ifname: "eth0",
    args: "",
    networkConfiguration: bytes(JSON.stringify(configuration)),
  };
  const conf = (more: object) => ({
    ...good,
    networkConfiguration: bytes(JSON.stringify({ ...configuration, ...more })),
  });

  test.each([
    [{ ...good, networkConfiguration: bytes("") }, "it is empty, wanted one JSON object"],
    [{ ...good, networkConfiguration: bytes("[1]") }, "wanted one JSON object"],
    [{ ...good, networkConfiguration: new Uint8Array([0xff, 0xfe, 0]) }, "wanted one JSON object"],
    [{ ...good, containerId: "" }, '"container_id" is "", wanted'],
    [{ ...good, containerId: "../x" }, '"container_id" is "../x", wanted'],
    [{ ...good, ifname: "eth0/1" }, '"ifname" is "eth0/1", wanted'],
    [{ ...good, args: "K8S_POD_NAME" }, "CNI_ARGS"],
    [conf({ name: "../../etc" }), '"network" is "../../etc", wanted'],
    [conf({ name: undefined }), '"network" is "", wanted'],
    [conf({ cniVersion: "9.9.9" }), '"cniVersion" is "9.9.9", wanted one of'],
    [conf({ ipam: {} }), "it names no addresses, wanted"],
    [conf({ ipam: { ranges: [[{ subnet: "10.0.0.0/33" }]] } }), '"10.0.0.0/33"'],
    [conf({ ipam: { ranges: null, subnet: 5 } }), '"ipam.subnet" is 5'],
  ])("%j", async (request, wanted) => {
    const call = callUnary(`${scratch.path}/run/s`, ipamService.allocate, request, { timeoutMs: 20_000 });
    await expect(call).rejects.toMatchObject({
      grpcCode: GrpcCode.invalidArgument,
      message: expect.stringContaining(wanted),
    });
    expect(await listed()).toEqual([]);
  });

  test("names in the other calls", async () => {
    const invalid = { grpcCode: GrpcCode.invalidArgument };
    await expect(client.get(attachment("a", "."))).rejects.toMatchObject(invalid);
    await expect(client.release(attachment("a b"))).rejects.toMatchObject(invalid);
    await expect(client.list("/").next()).rejects.toMatchObject(invalid);
    await expect(client.stats("x y")).rejects.toMatchObject(invalid);
    await expect(client.gc("", [])).rejects.toMatchObject(invalid);
    await expect(client.gc("net", [attachment("a/b")])).rejects.toMatchObject(invalid);
  });

  test("a GC that does not say what is to stay", async () => {
    await allocate("a");
    const call = callUnary(`${scratch.path}/run/s`, ipamService.gc, { network: "net" }, { timeoutMs: 20_000 });
    await expect(call).rejects.toMatchObject({
      grpcCode: GrpcCode.invalidArgument,
      message: 'Cannot read the request: "valid" is missing, wanted the attachments to keep, or none of them, but said',
    });
    expect(await listed()).toHaveLength(1);
  });
});

test.each(["own/s", "leases.db"])("a service whose %s is taken away has to start anew", async (file) => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const config = { socket: `${scratch.path}/own/s`, dataDir: scratch.path, sections: new Map() };
    const own = await startIpamServer(
      config,
      createLogger("error", () => undefined),
      await openSystem(),
    );
    unlinkSync(`${scratch.path}/${file}`);
    vi.advanceTimersByTime(10_000);
    expect(await own.lost).toContain(`"${scratch.path}/${file}"`);
    await own.stop();
  } finally {
    vi.useRealTimers();
  }
});

test("a call whose caller has gone before it began changes nothing", async () => {
  await allocate("a");
  using allocator = await Allocator.open(scratch.path);
  const unused = (): never => {
    throw new Error("It must not be asked");
  };
  const rpcs = ipamRpcs({ allocator, dataDir: scratch.path, sections: new Map(), release: unused, collect: unused });
  const call = { signal: AbortSignal.abort(), log: createLogger("error", () => undefined) };
  const run = async (method: { readonly path: string }, request: object): Promise<unknown> =>
    await rpcs.find((rpc) => rpc.method.path === method.path)?.handle(request, call);
  const networkConfiguration = new TextEncoder().encode(JSON.stringify(configuration));
  const gone = { code: 11, message: expect.stringContaining("its caller has gone") };
  const late = run(ipamService.allocate, { ...attachment("late"), args: "", networkConfiguration });
  await expect(late).rejects.toMatchObject(gone);
  await expect(run(ipamService.gc, { network: "net", valid: { attachments: [] } })).rejects.toMatchObject(gone);
  expect(await listed()).toEqual(["net 10.5.0.2/29 allocated"]);
});

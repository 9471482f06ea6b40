import { existsSync, mkdirSync, utimesSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { configOf, ownerOf } from "../test/fakes/allocator-in-memory.ts";
import { scratchDir } from "../test/support/scratch-dir.ts";
import { Allocator } from "./allocator.ts";
import { runIpamPlugin } from "./plugin.ts";

interface Outcome {
  readonly status: number;
  /** What was on stdout, read as JSON; `undefined` for nothing. */
  readonly out: Record<string, unknown> | undefined;
  readonly log: readonly string[];
}

const verbEnv = (verb: string, more: object = {}) => ({
  CNI_COMMAND: verb,
  CNI_CONTAINERID: "c1",
  CNI_NETNS: "/var/run/netns/none",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
  ...more,
});

async function run(env: Record<string, string>, conf: object, onLog?: () => void): Promise<Outcome> {
  const written: string[] = [];
  const log: string[] = [];
  const status = await runIpamPlugin({
    env,
    readStdin: async () => new TextEncoder().encode(JSON.stringify(conf)),
    writeResult: async (text) => void written.push(text),
    log(line) {
      log.push(line);
      onLog?.();
    },
  });
  expect(written.length).toBeLessThanOrEqual(1);
  return { status, out: written[0] === undefined ? undefined : JSON.parse(written[0]), log };
}

/** A node's directory, and the verbs on it. */
function setUp() {
  const scratch = scratchDir();
  const dataDir = `${scratch.path}/data`;
  const confOf = (ipam: object, top: object = {}) => ({
    cniVersion: "1.1.0",
    name: "net",
    ...top,
    ipam: { type: "pipette-ipam", dataDir, ...ipam },
  });
  const dual = { ranges: [[{ subnet: "10.0.0.0/29" }], [{ subnet: "fd00::/64" }]], routes: [{ dst: "0.0.0.0/0" }] };
  const call = (verb: string, id = "c1", ipam: object = dual, top: object = {}, onLog?: () => void): Promise<Outcome> =>
    run(verbEnv(verb, { CNI_CONTAINERID: id }), confOf(ipam, top), onLog);
  const states = async (): Promise<readonly string[]> => {
    using allocator = await Allocator.openExisting(dataDir);
    return (allocator?.list() ?? []).map((lease) => `${lease.owner.sandboxId} ${lease.state}`);
  };
  return { dataDir, path: scratch.path, call, states, dual, [Symbol.dispose]: () => scratch[Symbol.dispose]() };
}

const done = { status: 0, out: undefined, log: [] };

describe("ADD", () => {
  test.each([
    [
      "1.1.0",
      {
        ips: [
          { address: "10.0.0.2/29", gateway: "10.0.0.1" },
          { address: "fd00::2/64", gateway: "fd00::1" },
        ],
        routes: [{ dst: "0.0.0.0/0" }],
      },
    ],
    [
      "0.4.0",
      {
        ips: [
          { version: "4", address: "10.0.0.2/29", gateway: "10.0.0.1" },
          { version: "6", address: "fd00::2/64", gateway: "fd00::1" },
        ],
        routes: [{ dst: "0.0.0.0/0" }],
        dns: {},
      },
    ],
    [
      "0.2.0",
      {
        ip4: { ip: "10.0.0.2/29", gateway: "10.0.0.1", routes: [{ dst: "0.0.0.0/0" }] },
        ip6: { ip: "fd00::2/64", gateway: "fd00::1" },
        dns: {},
      },
    ],
  ])("answers in the shape of %s, and again the same", async (cniVersion, wanted) => {
    using node = setUp();
    for (let i = 0; i < 2; i++) {
      const { status, out } = await node.call("ADD", "c1", node.dual, { cniVersion });
      expect({ status, out }).toEqual({ status: 0, out: { cniVersion, ...wanted } });
    }
    expect(await node.states()).toEqual(["c1 allocated", "c1 allocated"]);
  });

  test("takes the DNS from resolvConf, and reserves nothing where that cannot be read", async () => {
    using node = setUp();
    const resolvConf = `${node.path}/resolv.conf`;
    const refused = await node.call("ADD", "c1", { ...node.dual, resolvConf });
    expect(refused).toMatchObject({ status: 1, out: { code: 5, msg: expect.stringContaining(`"${resolvConf}"`) } });
    expect(existsSync(node.dataDir)).toBe(false);
    writeFileSync(resolvConf, "nameserver 10.0.0.53\n");
    const { out } = await node.call("ADD", "c1", { ...node.dual, resolvConf });
    expect(out).toMatchObject({ dns: { nameservers: ["10.0.0.53"] } });
  });

  test("notes the pod", async () => {
    using node = setUp();
    const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u1";
    const conf = { cniVersion: "1.0.0", name: "net", ipam: { dataDir: node.dataDir, subnet: "10.0.0.0/29" } };
    await run(verbEnv("ADD", { CNI_ARGS: args }), conf);
    using allocator = await Allocator.openExisting(node.dataDir);
    expect(allocator?.list()).toMatchObject([{ pod: { namespace: "default", name: "web", uid: "u1" } }]);
  });

  test("that fails changes nothing and says why", async () => {
    using node = setUp();
    const small = { subnet: "10.0.0.0/30" };
    await node.call("ADD", "c1", small);
    const { status, out } = await node.call("ADD", "c2", small);
    expect(status).toBe(1);
    expect(out).toMatchObject({
      cniVersion: "1.1.0",
      code: 101,
      msg: expect.stringContaining("0 of 1 addresses free"),
    });
    expect(await node.states()).toEqual(["c1 allocated"]);
  });
});

describe("DEL", () => {
  test("gives back, any number of times", async () => {
    using node = setUp();
    await node.call("ADD");
    await node.call("ADD", "c2");
    for (let i = 0; i < 2; i++) expect(await node.call("DEL")).toEqual(done);
    expect(await node.states()).toEqual(["c1 cooling", "c2 allocated", "c1 cooling", "c2 allocated"]);
  });

  test("needs neither ranges nor anything else that ADD needs", async () => {
    using node = setUp();
    await node.call("ADD");
    const broken = { ranges: "nonsense", routes: 7, resolvConf: "not/absolute", cooldownMs: "x" };
    const conf = {
      cniVersion: "0.1.0",
      name: "net",
      args: 3,
      runtimeConfig: [],
      ipam: { dataDir: node.dataDir, ...broken },
    };
    const env = { CNI_COMMAND: "DEL", CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", CNI_ARGS: "=;=;" };
    expect(await run(env, conf)).toEqual(done);
    expect(await node.states()).toEqual(["c1 cooling", "c1 cooling"]);
  });

  test("of what never was succeeds and makes nothing", async () => {
    using node = setUp();
    expect(await node.call("DEL")).toEqual(done);
    expect(existsSync(node.dataDir)).toBe(false);
  });

  test("of an owner with the text of an address as its id touches nothing else", async () => {
    using node = setUp();
    await node.call("ADD");
    await node.call("DEL", "10.0.0.2");
    expect(await node.states()).toEqual(["c1 allocated", "c1 allocated"]);
    const { out } = await node.call("ADD", "c2");
    expect(out).toMatchObject({ ips: [{ address: "10.0.0.3/29" }, { address: "fd00::3/64" }] });
  });
});

describe("a misspelt key", () => {
  const misspelt = { range: [[{ subnet: "10.0.0.0/29" }]], exlude: ["10.0.0.3"] };
  const named =
    '"ipam.range" is an unknown key (did you mean "ranges"?) and passed over; "ipam.exlude" is an unknown key (did you mean "exclude"?) and passed over';

  test("is passed over, as host-local does", async () => {
    using node = setUp();
    for (const verb of ["ADD", "STATUS"])
      expect(await node.call(verb, "c1", { ...node.dual, exlude: ["10.0.0.3"] })).toMatchObject({ status: 0, log: [] });
  });

  test("is told where something is wrong", async () => {
    using node = setUp();
    expect(await node.call("ADD", "c1", misspelt)).toMatchObject({ status: 1, out: { code: 7, details: named } });
    const { out } = await node.call("STATUS", "c1", { ...misspelt, exclude: 7 });
    expect(out).toMatchObject({ code: 7, details: named });
  });
});

describe("CHECK", () => {
  test("wants a lease, and its addresses in prevResult", async () => {
    using node = setUp();
    const { out: prevResult } = await node.call("ADD");
    expect(await node.call("CHECK")).toEqual(done);
    expect(await node.call("CHECK", "c1", node.dual, { prevResult })).toEqual(done);
    // What later plugins added is theirs.
    const more = { ips: [...(prevResult!["ips"] as object[]), { address: "10.9.9.9/24" }] };
    expect(await node.call("CHECK", "c1", node.dual, { prevResult: more })).toEqual(done);
  });

  test.each([
    [
      "c1",
      { ips: [{ address: "10.0.0.2/29" }] },
      '"prevResult" has "10.0.0.2/29", wanted "fd00::2/64", which it holds',
    ],
    ["c1", { ips: [] }, '"prevResult" has no address, wanted "10.0.0.2/29"'],
    ["c2", undefined, '"eth0" of sandbox "c2": it has none'],
  ])("of %s with %j fails", async (id, prevResult, wanted) => {
    using node = setUp();
    await node.call("ADD");
    const { status, out } = await node.call("CHECK", id, node.dual, { prevResult });
    expect(status).toBe(1);
    expect(out).toMatchObject({ code: 103, msg: expect.stringContaining(wanted) });
  });

  test("without a database fails and makes none", async () => {
    using node = setUp();
    expect(await node.call("CHECK")).toMatchObject({ status: 1, out: { code: 103 } });
    expect(existsSync(node.dataDir)).toBe(false);
  });
});

describe("GC", () => {
  test("keeps what is listed and says what it gave up", async () => {
    using node = setUp();
    for (const id of ["c1", "c2"]) await node.call("ADD", id);
    const keep = { "cni.dev/valid-attachments": [{ containerID: "c2", ifname: "eth0" }] };
    const { status, out, log } = await node.call("GC", "", {}, keep);
    expect({ status, out }).toEqual({ status: 0, out: undefined });
    expect(log).toEqual(['Gave up the address of "eth0" of sandbox "c1": it is not among the attachments to keep']);
    expect(await node.states()).toEqual(["c1 cooling", "c2 allocated", "c1 cooling", "c2 allocated"]);
  });

  test("keeps who came after it had begun: nobody has told it of them", async () => {
    using node = setUp();
    using other = await Allocator.open(node.dataDir);
    // What it takes over first it says, and this is the moment for somebody else's ADD.
    mkdirSync(`${node.dataDir}/net`);
    writeFileSync(`${node.dataDir}/net/10.0.0.5`, "old\r\neth0");
    utimesSync(`${node.dataDir}/net/10.0.0.5`, 1_000_000, 1_000_000);
    const lateAdd = (): void => {
      other.allocate(ownerOf("late"), configOf({ subnet: "10.0.0.0/29" }));
      Bun.sleepSync(3);
    };
    const outcome = await node.call("GC", "", {}, { "cni.dev/valid-attachments": [] }, lateAdd);
    expect(outcome).toMatchObject({ status: 0, log: [expect.stringContaining("host-local"), expect.any(String)] });
    expect((await node.states()).toSorted()).toEqual(["late allocated", "old cooling"]);
  });

  test("honours an empty list and refuses a missing one", async () => {
    using node = setUp();
    await node.call("ADD");
    expect(await node.call("GC", "", {})).toMatchObject({ status: 1, out: { code: 7 } });
    expect(await node.states()).toEqual(["c1 allocated", "c1 allocated"]);
    expect(await node.call("GC", "", {}, { "cni.dev/valid-attachments": [] })).toMatchObject({ status: 0 });
    expect(await node.states()).toEqual(["c1 cooling", "c1 cooling"]);
  });
});

describe("STATUS", () => {
  test("is silent while an address can be given, from the start on", async () => {
    using node = setUp();
    expect(await node.call("STATUS")).toEqual(done);
    await node.call("ADD");
    expect(await node.call("STATUS")).toEqual(done);
    // Ranges that the runtime brings with each ADD are not known here.
    expect(await node.call("STATUS", "", {})).toEqual(done);
  });

  test("is silent where a range is used up, or the place cannot be written to: for ADD to say, which no pod that runs is evicted for", async () => {
    using node = setUp();
    const small = { ranges: [[{ subnet: "fd00::/64" }], [{ subnet: "10.0.0.0/30" }]] };
    await node.call("ADD", "c1", small);
    expect(await node.call("STATUS", "", small)).toEqual(done);
    expect(await node.call("ADD", "c2", small)).toMatchObject({ status: 1, out: { code: 101 } });
    using other = setUp();
    writeFileSync(other.dataDir, "");
    expect(await other.call("STATUS")).toEqual(done);
    expect(await other.call("ADD")).toMatchObject({ status: 1, out: { code: 101 } });
  });
});

import { beforeAll, expect, test } from "vitest";
import { leasesIn } from "./leases.ts";
import { compileExecutables, errorOf, resultOf, run, scratch, variables } from "./plugin.ts";
import { startScriptedAgent } from "./scripted-agent.ts";

beforeAll(compileExecutables);

const confOf = (socket: string, path: string, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "n",
  type: "pipette",
  socket,
  dataDir: path,
  ipam: { type: "pipette-ipam", dataDir: path, ranges: [[{ subnet: "10.1.0.0/29" }]] },
  ...more,
});

const added = async (conf: object, ids: readonly string[]): Promise<void> => {
  for (const id of ids) resultOf(await run({ env: variables("ADD", { CNI_CONTAINERID: id }), stdin: conf }));
};

test("section 2 GC: gives up what the runtime does not list, in this network only, and tells the agent", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  await added(conf, ["keep", "stale"]);
  await added({ ...conf, name: "other" }, ["foreign"]);
  const valid = [{ containerID: "keep", ifname: "eth0" }];
  const env = { CNI_COMMAND: "GC", CNI_PATH: "/usr/lib/cni" };
  expect((await run({ env, stdin: { ...conf, "cni.dev/valid-attachments": valid } })).status).toBe(0);
  expect(await leasesIn(directory.path)).toEqual([
    { address: "10.1.0.2/29", state: "allocated", containerId: "keep" },
    { address: "10.1.0.3/29", state: "releasing", containerId: "stale" },
    { address: "10.1.0.2/29", state: "allocated", containerId: "foreign" },
  ]);
  expect(agent.asked.at(-1)).toMatchObject({
    method: "Gc",
    request: { network: "n", valid: [{ container_id: "keep", ifname: "eth0" }] },
  });
});

test("section 2 GC: the same container with another interface is another attachment", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  await added(conf, ["c1"]);
  const valid = [{ containerID: "c1", ifname: "eth1" }];
  expect((await run({ env: variables("GC"), stdin: { ...conf, "cni.dev/valid-attachments": valid } })).status).toBe(0);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing"]);
});

test.each([
  ["an empty list", { "cni.dev/valid-attachments": [] }],
  ["null, as Go writes an empty list,", { "cni.dev/valid-attachments": null }],
  ["an empty list under the key of the first text", { "cni.dev/attachments": [] }],
])("section 2 GC: %s keeps nothing", async (_, list) => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  await added(conf, ["c1", "c2"]);
  expect((await run({ env: variables("GC"), stdin: { ...conf, ...list } })).status).toBe(0);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing", "releasing"]);
});

test("section 2 GC: without a list nothing is given up", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  await added(conf, ["c1"]);
  expect(errorOf(await run({ env: variables("GC"), stdin: conf })).code).toBe(7);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["allocated"]);
});

test("section 2 GC: where the agent gives the addresses and is away, it finds what was given up when it is back", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  await added(conf, ["keep", "stale"]);
  agent.stop();
  const { ipam: _, ...rest } = conf;
  const valid = [{ containerID: "keep", ifname: "eth0" }];
  expect((await run({ env: variables("GC"), stdin: { ...rest, "cni.dev/valid-attachments": valid } })).status).toBe(0);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["allocated", "releasing"]);
});

test("section 2 GC: where another IPAM plugin keeps the addresses and the agent is away, the runtime has to come again", async () => {
  using directory = scratch();
  const conf = { ...confOf(`${directory.path}/none.sock`, directory.path), ipam: { type: "static" } };
  const failed = errorOf(await run({ env: variables("GC"), stdin: { ...conf, "cni.dev/valid-attachments": [] } }));
  expect(failed.code).toBe(11);
});

test("section 2 GC: finishes where the ranges are invalid and ipam holds garbage", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  await added(conf, ["c1"]);
  const ipam = { ...conf.ipam, ranges: "none", routes: 5 };
  const stdin = { ...conf, ipam, mtu: "big", "cni.dev/valid-attachments": [] };
  expect((await run({ env: variables("GC"), stdin })).status).toBe(0);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing"]);
});

test("section 2 GC: what the agent could not remove is reported", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent(() => ({ removed: [], failures: ["c7 eth0: busy", "c8 eth0: busy"] }));
  const stdin = { ...confOf(agent.socket, directory.path), "cni.dev/valid-attachments": [] };
  const failed = errorOf(await run({ env: variables("GC"), stdin }));
  expect(failed.details).toContain("c7 eth0: busy");
  expect(failed.details).toContain("c8 eth0: busy");
});

test("section 2 STATUS: needs CNI_COMMAND only, and says nothing when an ADD can work", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const ended = await run({ env: { CNI_COMMAND: "STATUS" }, stdin: confOf(agent.socket, directory.path) });
  expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "", ""]);
  expect(agent.asked.at(-1)).toMatchObject({ method: "Status", request: { network: "n" } });
});

test.each(["pipette", "pipette-ipam"] as const)(
  "section 2 STATUS: %s is silent where the addresses have run out, for pods that run would be evicted for it; ADD says it",
  async (executable) => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const conf = confOf(agent.socket, directory.path);
    await added(conf, ["c2", "c3", "c4", "c5", "c6"]);
    const ended = await run({ env: variables("STATUS"), stdin: conf, executable });
    expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "", ""]);
    const env = variables("ADD", { CNI_CONTAINERID: "c7" });
    const failed = errorOf(await run({ env, stdin: conf, executable: "pipette-ipam" }));
    expect(failed).toMatchObject({ code: 101, msg: expect.stringContaining("0 of 5 addresses free") });
  },
);

test.each(["pipette", "pipette-ipam"] as const)(
  "section 2 STATUS: %s is silent where the database cannot be written: evicted pods could not be taken down either",
  async (executable) => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const conf = confOf(agent.socket, directory.path);
    const stdin = { ...conf, ipam: { ...conf.ipam, dataDir: "/proc/pipette" } };
    expect((await run({ env: variables("STATUS"), stdin, executable })).status).toBe(0);
    const failed = errorOf(await run({ env: variables("ADD"), stdin, executable: "pipette-ipam" }));
    expect(failed).toMatchObject({ code: 101, msg: expect.stringContaining("/proc/pipette") });
  },
);

test.each([
  [50, "The bridge is gone"],
  [51, "Routes are missing"],
])(
  "section 2 STATUS: code %i of the agent is passed on with its cause, the other causes beside it",
  async (code, message) => {
    using directory = scratch();
    const problems = [
      { code: 50, message: "Forwarding is off" },
      { code, message },
    ];
    await using agent = await startScriptedAgent(() => ({ problems }));
    const failed = errorOf(await run({ env: variables("STATUS"), stdin: confOf(agent.socket, directory.path) }));
    expect(failed.code).toBe(code);
    expect(`${failed.msg} ${failed.details}`).toContain(message);
    expect(`${failed.msg} ${failed.details}`).toContain("Forwarding is off");
  },
);

test("section 2 STATUS: a configuration that no ADD can use is named as such", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  const stdin = { ...conf, ipam: { ...conf.ipam, ranges: [[{ subnet: "10.1.0.0/33" }]] } };
  expect(errorOf(await run({ env: variables("STATUS"), stdin }))).toMatchObject({ code: 7 });
});

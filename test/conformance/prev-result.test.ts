import { beforeAll, expect, test } from "vitest";
import { leasesIn, pendingDetachesIn } from "./leases.ts";
import { compileExecutables, errorOf, resultOf, run, scratch, variables } from "./plugin.ts";
import { refusing, startScriptedAgent } from "./scripted-agent.ts";

beforeAll(compileExecutables);

const before = {
  cniVersion: "1.0.0",
  interfaces: [{ name: "tun0", sandbox: "/var/run/netns/pt-cf-none" }],
  ips: [{ address: "192.0.2.9/24", interface: 0 }],
  routes: [{ dst: "192.0.2.0/24" }],
  dns: { nameservers: ["192.0.2.1"] },
};

const confOf = (socket: string, path: string, more: object = {}) => ({
  cniVersion: "1.0.0",
  name: "n",
  type: "pipette",
  socket,
  dataDir: path,
  ipam: { type: "pipette-ipam", dataDir: path, ranges: [[{ subnet: "10.1.0.0/24" }]] },
  ...more,
});

test("section 2 ADD: a plugin that is not the first outputs what it was given and adds its own", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const stdin = confOf(agent.socket, directory.path, { prevResult: before });
  const added = resultOf(await run({ env: variables("ADD"), stdin }));
  expect(added).toEqual({
    cniVersion: "1.0.0",
    interfaces: [
      ...before.interfaces,
      { name: "vethx" },
      { name: "eth0", mac: "0a:58:0a:01:00:02", sandbox: "/var/run/netns/pt-cf-none" },
    ],
    ips: [...before.ips, { address: "10.1.0.2/24", gateway: "10.1.0.1" }],
    routes: before.routes,
    dns: before.dns,
  });
});

test("section 2 ADD: an interface of that name that an earlier plugin made is an error, and changes nothing", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const prevResult = { ...before, interfaces: [{ name: "eth0", sandbox: "/var/run/netns/pt-cf-none" }] };
  const stdin = confOf(agent.socket, directory.path, { prevResult });
  const failed = errorOf(await run({ env: variables("ADD"), stdin }));
  expect(failed).toMatchObject({ code: 7, msg: expect.stringContaining('"prevResult.interfaces" is "eth0"') });
  expect(directory.files()).toEqual([]);
});

const later = {
  "with the final result": (added: object) => ({ prevResult: added }),
  "with what later plugins added to it": ({ ips, ...rest }: { ips?: unknown[] }) => ({
    prevResult: { ...rest, ips: [...(ips ?? []), { address: "192.0.2.9/24" }], dns: { domain: "x" } },
  }),
  "without prevResult": () => ({}),
  "with a prevResult of nothing": () => ({ prevResult: {} }),
  "with a prevResult that is garbage": () => ({ prevResult: { ips: "none", interfaces: [7] } }),
  "with a prevResult that is no object": () => ({ prevResult: 7 }),
  "with runtimeConfig that is garbage": () => ({ runtimeConfig: [1], args: "x" }),
  "with a type that leads elsewhere": () => ({ type: "../x" }),
  "with ill-typed keys of ours": () => ({ mtu: "big", addTimeoutMs: {}, logFile: 5, logLevel: [], dns: 1 }),
} as const;

test.each(Object.entries(later))("section 2 DEL: finishes %s", async (_, change) => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  const added = resultOf(await run({ env: variables("ADD"), stdin: conf }));
  const ended = await run({ env: variables("DEL"), stdin: { ...conf, ...change(added) } });
  expect([ended.status, ended.stdout]).toEqual([0, ""]);
  expect(agent.asked.map(({ method }) => method)).toEqual(["CmdAdd", "CmdDel"]);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing"]);
});

test.each([
  ["the namespace is gone", { CNI_NETNS: "" }, {}],
  ["CNI_NETNS is not set", { CNI_NETNS: undefined }, {}],
  ["CNI_ARGS is garbage", { CNI_ARGS: "a;;=b" }, {}],
  ["CNI_PATH is not set", { CNI_PATH: undefined }, {}],
  ["the ranges are invalid", {}, { ranges: [[{ subnet: "10.1.0.0/33" }]] }],
  ["the ranges are gone", {}, { ranges: undefined }],
  ["the gateway lies elsewhere", {}, { ranges: [[{ subnet: "10.1.0.0/24", gateway: "192.0.2.1" }]] }],
])("section 2 DEL: finishes where %s", async (_, env, ipam) => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  resultOf(await run({ env: variables("ADD"), stdin: conf }));
  const stdin = { ...conf, ipam: { ...conf.ipam, ...ipam } };
  const ended = await run({ env: variables("DEL", env), stdin });
  expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "", ""]);
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing"]);
});

test.each([
  ["a list", []],
  ["a number", 5],
  ["of a type that is a number", (dataDir: string) => ({ type: 5, dataDir })],
  ["of a type that leads elsewhere", (dataDir: string) => ({ type: "../x", dataDir })],
  ["of our type with a dataDir that is a number", { type: "pipette-ipam", dataDir: 5 }],
])("section 2 DEL: finishes where ipam is %s, for what there is no ADD can have made", async (_, given) => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const ipam = typeof given === "function" ? given(directory.path) : given;
  const stdin = { ...confOf(agent.socket, directory.path), ipam };
  const ended = await run({ env: variables("DEL"), stdin });
  expect([ended.status, ended.stdout]).toEqual([0, ""]);
  expect(agent.asked.map(({ method }) => method)).toEqual(["CmdDel"]);
});

test("section 2 DEL: succeeds as often as it is called, also for what never was", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  resultOf(await run({ env: variables("ADD"), stdin: conf }));
  for (const id of ["c1", "c1", "c1", "never"]) {
    const ended = await run({ env: variables("DEL", { CNI_CONTAINERID: id }), stdin: conf });
    expect([ended.status, ended.stdout, ended.stderr]).toEqual([0, "", ""]);
  }
});

test("section 2 DEL: an agent that cannot do it now does not hold it up", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  resultOf(await run({ env: variables("ADD"), stdin: conf }));
  agent.follow(refusing(102, "The interface is busy"));
  const ended = await run({ env: variables("DEL"), stdin: conf });
  expect([ended.status, ended.stdout]).toEqual([0, ""]);
  expect(ended.stderr).toContain("The interface is busy");
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["releasing"]);
});

test("section 2 DEL: one that an ADD has overtaken fails, and leaves the new life alone", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  resultOf(await run({ env: variables("ADD"), stdin: conf }));
  agent.follow(refusing(104, "It has been added again"));
  expect(errorOf(await run({ env: variables("DEL"), stdin: conf }))).toMatchObject({ code: 104 });
  expect((await leasesIn(directory.path)).map(({ state }) => state)).toEqual(["allocated"]);
  expect(await pendingDetachesIn(directory.path)).toEqual([]);
});

test("section 2 DEL: where the lease cannot be given up it fails, in words that make the runtime come again", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  const stdin = { ...conf, ipam: { ...conf.ipam, dataDir: "/proc/pipette" } };
  agent.stop();
  const failed = errorOf(await run({ env: variables("DEL"), stdin }));
  expect(failed.msg).toContain("/proc/pipette");
  expect([5, 11, 101]).toContain(failed.code);
  expect(JSON.stringify(failed)).not.toMatch(/not found|no such file or directory/i);
});

test("peers runner-up ocicni#74: section 2 CHECK: confirms what ADD made, and what later plugins added to it", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  const added = resultOf(await run({ env: variables("ADD"), stdin: conf })) as { ips: object[] };
  for (const prevResult of [
    added,
    { ...added, ips: [...added.ips, { address: "192.0.2.9/24" }], dns: { domain: "x" } },
  ])
    expect((await run({ env: variables("CHECK"), stdin: { ...conf, prevResult } })).status).toBe(0);
  expect(agent.asked.at(-1)).toMatchObject({ method: "CmdCheck", request: { netns: "/var/run/netns/pt-cf-none" } });
});

test("section 2 CHECK: reads a prevResult without a version by the configuration's", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  const { cniVersion: _, ...prevResult } = resultOf(await run({ env: variables("ADD"), stdin: conf }));
  expect((await run({ env: variables("CHECK"), stdin: { ...conf, prevResult } })).status).toBe(0);
});

test("section 2 CHECK: the agent's finding is passed on", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const conf = confOf(agent.socket, directory.path);
  const prevResult = resultOf(await run({ env: variables("ADD"), stdin: conf }));
  agent.follow(refusing(103, "The route is gone"));
  const failed = errorOf(await run({ env: variables("CHECK"), stdin: { ...conf, prevResult } }));
  expect(failed).toMatchObject({ code: 103, msg: "The route is gone" });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { CniCode } from "../../shared/errors.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { AgentHome, type AgentProcess, bridgeName, eventually, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

describeWith("an agent with the bridge data path", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let agent: AgentProcess;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-da-");
    home = new AgentHome();
    agent = await home.start();
  });

  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("ADD from its own ranges, the same again, CHECK, DEL, DEL again", async () => {
    const netns = await sandbox.addPod();
    const conf = { dns: { nameservers: ["10.78.0.1"] } };
    const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u1";
    const first = await home.cmd("cmdAdd", "one", { netns, args, conf });
    const result = resultOf(first);
    expect(result.ips.map((ip) => ip.address)).toEqual([
      expect.stringMatching(/^10\.78\.0\.\d+\/16$/),
      expect.stringMatching(/^fd78::[0-9a-f]+\/64$/),
    ]);
    expect(result).toMatchObject({ cniVersion: "1.0.0", dns: { nameservers: ["10.78.0.1"] } });
    expect(await sandbox.ping(netns, "10.78.0.1")).toBe(true);

    const again = await home.cmd("cmdAdd", "one", { netns, args, conf });
    expect(resultOf(again)).toEqual(result);
    expect((await home.cmd("cmdCheck", "one", { netns, conf: { prevResult: result } })).error).toBeUndefined();
    const wrong = { ...result, ips: [{ ...result.ips[0], address: "10.78.9.9/16" }, result.ips[1]] };
    const refused = await home.cmd("cmdCheck", "one", { netns, conf: { prevResult: wrong } });
    expect(refused.error).toMatchObject({ code: 103, message: expect.stringContaining("10.78.0.") });

    using store = await home.store();
    expect(store.list().map((lease) => [lease.state, lease.pod?.name])).toEqual([
      ["allocated", "web"],
      ["allocated", "web"],
    ]);
    expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
    expect(await home.containers()).toEqual([]);
    expect(store.list().map((lease) => lease.state)).toEqual(["cooling", "cooling"]);
    expect((await home.cmd("cmdDel", "one")).error).toBeUndefined();
    expect((await home.cmd("cmdDel", "never-seen")).error).toBeUndefined();
  });

  test("peers 5.18: every call is one line of the log, with its id and without secrets", async () => {
    const args = "IgnoreUnknown=1;K8S_POD_NAME=quiet;TOKEN=hush";
    await home.cmd("cmdDel", "logged", { args, conf: { password: "hush" } });
    const line = await agent.logged((entry) => entry["container"] === "logged");
    expect(line).toMatchObject({ message: "served", verb: "DEL", network: "pods", ifname: "eth0", outcome: "ok" });
    expect(line["request"]).toMatch(/^[0-9a-f-]{36}$/);
    expect(line["durationMs"]).toBeGreaterThan(0);
    expect(agent.stderr).toContain("K8S_POD_NAME=quiet");
    expect(agent.stderr).not.toContain("hush");
  });

  test.each([
    ["a network that is not there", "cmdAdd", {}, { name: "other" }, 7, 'the agent has "pods"'],
    ["no network name", "cmdAdd", {}, { name: null }, 7, '"name" is missing'],
    ["a network name that leads elsewhere", "cmdDel", {}, { name: "../x" }, 7, '"name" is "../x"'],
    ["no namespace", "cmdAdd", { netns: "" }, {}, 4, '"netns" is ""'],
    ["a relative namespace", "cmdAdd", { netns: "x" }, {}, 4, '"netns" is "x"'],
    ["the node's own namespace", "cmdAdd", { netns: "/proc/self/ns/net" }, {}, 4, "/proc/self/ns/net"],
    ["a namespace that is not there", "cmdAdd", { netns: "/run/netns/pt-da-none" }, {}, 4, "pt-da-none"],
    ["an interface name with a path", "cmdAdd", { ifname: "a/b" }, {}, 4, '"ifname" is "a/b"'],
    ["an unknown version", "cmdAdd", {}, { cniVersion: "9.0" }, 1, '"cniVersion" is "9.0"'],
    ["an IPAM result without addresses", "cmdAdd", {}, { ipamResult: { ips: [] } }, 101, "holds no address"],
    ["an IPAM result that is none", "cmdAdd", {}, { ipamResult: "x" }, 7, '"ipamResult" is "x"'],
    ["a group address as MAC", "cmdAdd", {}, { runtimeConfig: { mac: "01:00:00:00:00:01" } }, 7, "01:00:00:00:00:01"],
    ["CHECK without prevResult", "cmdCheck", {}, {}, 7, '"prevResult" is missing'],
    ["CHECK before 0.4.0", "cmdCheck", {}, { cniVersion: "0.3.1" }, 1, "0.4.0"],
  ] as const)("refuses %s and changes nothing", async (_name, verb, options, conf, code, text) => {
    const netns = await sandbox.addPod();
    const response = await home.cmd(verb, "hostile", { netns, conf, ...options });
    expect(response.error).toMatchObject({ code, message: expect.stringContaining(text) });
    expect(await home.containers()).toEqual([]);
    using store = await home.store();
    expect(store.list().filter((lease) => lease.owner.sandboxId === "hostile" && lease.state === "allocated")).toEqual(
      [],
    );
    await sandbox.removePod(netns);
  });

  test("a failed ADD gives its addresses back", async () => {
    await home.cmd("cmdAdd", "failing", { netns: "/proc/self/ns/net" });
    using store = await home.store();
    const states = store
      .list()
      .filter((lease) => lease.owner.sandboxId === "failing")
      .map((lease) => lease.state);
    expect(states).toEqual(["cooling", "cooling"]);
  });

  test("garbage on the socket harms nobody", async () => {
    for (const bytes of ["GET / HTTP/1.1\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\xff", "\0".repeat(100)]) {
      await Bun.connect({
        unix: home.socket,
        socket: { open: (socket) => void socket.write(bytes), data: () => undefined, close: () => undefined },
      });
    }
    expect((await home.status()).problems).toEqual([]);
  });

  test("100 ADDs at once have 100 addresses, and 100 DELs leave nothing", async () => {
    const ids = Array.from({ length: 100 }, (_, i) => `crowd-${i}`);
    const pods = await Promise.all(ids.map((id) => sandbox.addPod(id)));
    const results = await Promise.all(ids.map((id, i) => home.cmd("cmdAdd", id, { netns: pods[i] ?? "" })));
    expect(new Set(results.map((response) => resultOf(response).ips[0]?.address)).size).toBe(100);
    expect(await home.containers()).toEqual([...ids].sort());
    expect(await sandbox.ping(pods[0], resultOf(results[99]!).ips[0]!.address.replace("/16", ""))).toBe(true);
    const answers = await Promise.all(ids.map((id) => home.cmd("cmdDel", id)));
    expect(answers.filter((answer) => answer.error !== undefined)).toEqual([]);
    expect(await home.containers()).toEqual([]);
    await eventually(async () => !(await sandbox.node("ip -br link show type veth")).includes("@"), "no veth left");
    using store = await home.store();
    expect(store.list().filter((lease) => lease.state !== "cooling")).toEqual([]);
  });

  test("many ADDs and DELs for one container end in what came last", async () => {
    const netns = await sandbox.addPod();
    const rounds = Array.from({ length: 20 }, () => [
      home.cmd("cmdAdd", "busy", { netns }),
      home.cmd("cmdDel", "busy"),
    ]);
    for (const [added, removed] of await Promise.all(rounds.map((calls) => Promise.all(calls)))) {
      expect(added?.error).toBeUndefined();
      // A DEL that is served behind an ADD which began later is refused.
      if (removed?.error !== undefined) expect(removed.error.code).toBe(CniCode.overtaken);
    }
    resultOf(await home.cmd("cmdAdd", "busy", { netns }));
    expect(await home.containers()).toEqual(["busy"]);
    await home.cmd("cmdDel", "busy");
    expect(await home.containers()).toEqual([]);
  });

  test("GC takes away what the runtime does not know, and only of its network", async () => {
    const [a, b] = [await sandbox.addPod(), await sandbox.addPod()];
    resultOf(await home.cmd("cmdAdd", "keep", { netns: a }));
    resultOf(await home.cmd("cmdAdd", "drop", { netns: b }));
    const other = await home.call(nodeService.gc, { network: "elsewhere", valid: [] });
    expect(other).toEqual({ removed: [], failures: [], leftOut: 0 });
    expect(await home.containers()).toEqual(["drop", "keep"]);
    const valid = [{ containerId: "keep", ifname: "eth0" }];
    const response = await home.call(nodeService.gc, { network: "pods", valid });
    expect(response).toEqual({ removed: [{ containerId: "drop", ifname: "eth0" }], failures: [], leftOut: 0 });
    expect(await home.containers()).toEqual(["keep"]);
    using store = await home.store();
    const allocated = store.list().filter((lease) => lease.state === "allocated");
    expect([...new Set(allocated.map((lease) => lease.owner.sandboxId))]).toEqual(["keep"]);
    await home.cmd("cmdDel", "keep");
    await expect(home.call(nodeService.gc, { network: "a/b", valid: [] })).rejects.toMatchObject({ grpcCode: 3 });
  });

  test("Status names what is wrong", async () => {
    expect(await home.status()).toMatchObject({ problems: [], pid: agent.pid, networks: ["pods"], departing: 0 });
    const { problems } = await home.call(nodeService.status, { network: "other" });
    expect(problems).toEqual([{ code: 50, message: expect.stringContaining('the agent has "pods"'), advisory: false }]);
  });

  test("a bridge that somebody takes down or away is mended without an ADD, pods included", async () => {
    const netns = await sandbox.addPod();
    resultOf(await home.cmd("cmdAdd", "mended", { netns }));
    for (const command of [`ip link set ${bridgeName} down`, `ip link del ${bridgeName}`]) {
      const before = agent.lines.length;
      await sandbox.node(command);
      await eventually(
        () => agent.lines.slice(before).some((line) => line["message"] === "repairing the data path"),
        "the repair",
      );
      await eventually(async () => (await home.status()).problems.length === 0, "no problem");
      expect(await sandbox.ping(netns, "10.78.0.1")).toBe(true);
    }
    await home.cmd("cmdDel", "mended");
  });
});

import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Owner } from "../../shared/cni/types.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { AgentHome, AgentProcess, bridgeName, eventually, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { DatagramSocket } from "./datagram-socket.ts";

const ownerOf = (sandboxId: string): Owner => ({ network: networkName, sandboxId, ifname: "eth0" });

describeWith("an agent that is stopped, killed, frozen, doubled", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let pods: string[] = [];

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dl-");
  });
  beforeEach(() => {
    home = new AgentHome();
  });
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    for (const pod of pods) await sandbox.removePod(pod);
    pods = [];
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("an agent whose socket was taken away says so and ends, so that its supervisor starts it again", async () => {
    const agent = await home.start();
    unlinkSync(home.socket);
    expect(await agent.ended()).toBe(1);
    const line = await agent.logged((entry) => entry["level"] === "error");
    expect(line["message"]).toContain(`the socket "${home.socket}" is gone`);
    expect((await home.start()).pid).toBeGreaterThan(0);
  });

  test("an agent whose socket was replaced ends and leaves the other program's socket alone", async () => {
    const agent = await home.start();
    unlinkSync(home.socket);
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(home.socket, resolve));
    const { ino } = lstatSync(home.socket);
    try {
      expect(await agent.ended()).toBe(1);
      expect(agent.stderr).toContain(`the socket \\"${home.socket}\\" is another program's`);
      expect(lstatSync(home.socket).ino).toBe(ino);
    } finally {
      other.close();
    }
  });

  const addPod = async (name: string): Promise<string> => {
    const path = await sandbox.addPod(name);
    pods.push(path);
    return path;
  };

  const stateOf = async (sandboxId: string): Promise<string[]> => {
    using store = await home.store();
    return store
      .list()
      .filter((lease) => lease.owner.sandboxId === sandboxId)
      .map((lease) => lease.state);
  };

  test("killed with live pods and started again: traffic flows, the same ADD gives the same answer, DEL works", async () => {
    const first = await home.start();
    const [a, b] = [await addPod("a"), await addPod("b")];
    const resultA = resultOf(await home.cmd("cmdAdd", "a", { netns: a }));
    const resultB = resultOf(await home.cmd("cmdAdd", "b", { netns: b }));
    const addressB = resultB.ips[0]?.address.replace("/16", "") ?? "";
    expect(await first.end("SIGKILL")).not.toBe(0);
    expect(await sandbox.ping(a, addressB)).toBe(true);
    await expect(home.status()).rejects.toMatchObject({ unreachable: true });

    const second = await home.start();
    expect(second.lines.find((line) => line["message"] === "reconciled")).toMatchObject({
      adopted: 2,
      finished: 0,
      orphans: 0,
      missing: 0,
    });
    expect(await sandbox.ping(a, addressB)).toBe(true);
    expect(resultOf(await home.cmd("cmdAdd", "a", { netns: a }))).toEqual(resultA);
    expect((await home.cmd("cmdDel", "a")).error).toBeUndefined();
    expect(await home.containers()).toEqual(["b"]);
    expect(await sandbox.ping(b, "10.78.0.1")).toBe(true);
    expect(await stateOf("a")).toEqual(["cooling", "cooling"]);
  });

  test("leases and pending detaches that were left while it was down are finished at the start", async () => {
    const first = await home.start();
    for (const id of ["released", "departed", "stays"])
      resultOf(await home.cmd("cmdAdd", id, { netns: await addPod(id) }));
    await first.end("SIGKILL");
    {
      using store = await home.store();
      store.release(ownerOf("released"), "releasing");
      store.recordPendingDetach(ownerOf("departed"));
      store.recordPendingDetach(ownerOf("never-was"));
    }
    await home.start();
    expect(await home.containers()).toEqual(["stays"]);
    expect(await stateOf("released")).toEqual(["cooling", "cooling"]);
    expect(await stateOf("departed")).toEqual(["cooling", "cooling"]);
    expect(await stateOf("stays")).toEqual(["allocated", "allocated"]);
    expect((await home.status()).departing).toBe(0);
  });

  test("what is left while it runs is finished without being told", async () => {
    await home.start();
    resultOf(await home.cmd("cmdAdd", "live", { netns: await addPod("live") }));
    {
      using store = await home.store();
      store.release(ownerOf("live"), "releasing");
    }
    await eventually(async () => (await stateOf("live")).every((state) => state === "cooling"), "cooling leases");
    expect(await home.containers()).toEqual([]);
  });

  test("its own orphan is removed, a stranger's interfaces are left alone", async () => {
    const first = await home.start();
    for (const id of ["orphan", "stays"]) resultOf(await home.cmd("cmdAdd", id, { netns: await addPod(id) }));
    await first.end("SIGKILL");
    {
      using store = await home.store();
      store.release(ownerOf("orphan"), "cooling");
    }
    await sandbox.node("ip link add ptdlx0 type veth peer name ptdlx1");
    await sandbox.node(`ip link set ptdlx0 master ${bridgeName} alias pipette-lookalike`);
    const second = await home.start();
    expect(second.lines.find((line) => line["message"] === "reconciled")).toMatchObject({ adopted: 1, orphans: 1 });
    expect(await home.containers()).toEqual(["stays"]);
    expect(await sandbox.node("ip -br link show ptdlx0")).toContain("ptdlx0");
    await sandbox.node("ip link del ptdlx0");
  });

  test("a store that was lost costs no live pod its network", async () => {
    const first = await home.start();
    const netns = await addPod("lost");
    const result = resultOf(await home.cmd("cmdAdd", "lost", { netns }));
    await first.end();
    await sandbox.node(`rm -r ${home.dataDir}`);
    const second = await home.start();
    expect(second.lines.find((line) => line["message"] === "reconciled")).toMatchObject({ orphans: 0, restored: 1 });
    expect(await sandbox.ping(netns, "10.78.0.1")).toBe(true);
    expect(await stateOf("lost")).toEqual(["allocated", "allocated"]);
    expect(resultOf(await home.cmd("cmdAdd", "lost", { netns }))).toEqual(result);
    const next = resultOf(await home.cmd("cmdAdd", "next", { netns: await addPod("next") }));
    for (const { address } of next.ips) expect(result.ips.map((ip) => ip.address)).not.toContain(address);
    expect((await home.cmd("cmdDel", "lost")).error).toBeUndefined();
    expect(await stateOf("lost")).toEqual(["cooling", "cooling"]);
  });

  test("SIGTERM in mid-call: what was begun is answered, the rest is refused, nothing is half done", async () => {
    const agent = await home.start();
    const ids = Array.from({ length: 60 }, (_, i) => `term-${i}`);
    const namespaces = await Promise.all(ids.map((id) => addPod(id)));
    const calls = ids.map((id, i) =>
      home.cmd("cmdAdd", id, { netns: namespaces[i] ?? "" }).then(
        (response) => response.error === undefined,
        () => false,
      ),
    );
    await Promise.race(calls);
    agent.signal("SIGTERM");
    const answered = await Promise.all(calls);
    expect(await agent.ended()).toBe(0);
    expect(agent.lines.at(-1)).toMatchObject({ message: "stopped" });
    expect(existsSync(home.socket)).toBe(false);

    await home.start();
    expect(await home.containers()).toEqual(ids.filter((_, i) => answered[i]).sort());
    using store = await home.store();
    const holders = new Set(
      store
        .list()
        .filter((l) => l.state === "allocated")
        .map((l) => l.owner.sandboxId),
    );
    expect([...holders].sort()).toEqual(ids.filter((_, i) => answered[i]).sort());
  });

  test("a second one on the same socket is refused with the first one's pid, however the first one was left", async () => {
    const first = await home.start();
    const second = home.spawn();
    expect(await second.ended()).toBe(1);
    expect(second.stderr).toContain(`process ${first.pid}`);
    first.signal("SIGSTOP");
    const third = home.spawn();
    expect(await third.ended()).toBe(1);
    expect(third.stderr).toContain(`process ${first.pid}`);
    first.signal("SIGCONT");
    expect((await home.status()).pid).toBe(first.pid);
    await first.end("SIGKILL");
    // Socket and lock file of the dead one are still there.
    expect(lstatSync(home.socket).isSocket()).toBe(true);
    const fourth = await home.start();
    expect((await home.status()).pid).toBe(fourth.pid);
  });

  test("a second one on the same store is refused too", async () => {
    const first = await home.start();
    using other = { home: new AgentHome({ dataDir: home.dataDir }), [Symbol.dispose]: () => undefined };
    const second = other.home.spawn();
    expect(await second.ended()).toBe(1);
    expect(second.stderr).toContain(`process ${first.pid}`);
    expect(existsSync(other.home.socket)).toBe(false);
    await other.home[Symbol.asyncDispose]();
  });

  test("what is no stale socket is never removed", async () => {
    mkdirSync(dirname(home.socket), { recursive: true });
    writeFileSync(home.socket, "mine");
    const first = home.spawn();
    expect(await first.ended()).toBe(1);
    expect(first.stderr).toContain("it is no socket");
    expect(readFileSync(home.socket, "utf8")).toBe("mine");
    await sandbox.node(`rm ${home.socket}`);
    const stranger = createServer().listen(home.socket);
    const second = home.spawn();
    expect(await second.ended()).toBe(1);
    expect(second.stderr).toContain("another program listens there");
    expect(lstatSync(home.socket).isSocket()).toBe(true);
    stranger.close();
  });

  test("frozen: an ADD whose plugin gave up wires nothing, a DEL and a GC of then touch no pod of now", async () => {
    const agent = await home.start();
    const [late, first] = [await addPod("late"), await addPod("alive1")];
    const conf = {
      ipam: {
        type: "pipette-ipam",
        dataDir: home.dataDir,
        ranges: [[{ subnet: "10.78.0.0/16" }]],
        routes: [{ dst: "0.0.0.0/0" }],
      },
    };
    resultOf(await home.cmd("cmdAdd", "alive", { netns: first, conf }));
    const timeoutMs = 300;
    agent.signal("SIGSTOP");
    const calls = [
      home.cmd("cmdAdd", "late", { netns: late, conf, timeoutMs }),
      home.cmd("cmdDel", "alive", { timeoutMs, conf }),
      home.call(nodeService.gc, { network: networkName, valid: [] }, timeoutMs),
    ];
    for (const outcome of await Promise.allSettled(calls)) expect(outcome.status).toBe("rejected");
    {
      // The word that the plugin of the DEL leaves.
      using store = await home.store();
      store.release(ownerOf("alive"), "releasing");
    }
    const second = await addPod("alive2");
    const again = home.cmd("cmdAdd", "alive", { netns: second, conf });
    agent.signal("SIGCONT");
    resultOf(await again);
    await eventually(async () => (await stateOf("alive")).join() === "allocated", "the second life alone");
    expect(await home.containers()).toEqual(["alive"]);
    expect(await stateOf("late")).not.toContain("allocated");
    expect(await sandbox.ping(second, "10.78.0.1")).toBe(true);
  });

  test("a delegated attachment that was given up, then added again with the same id, stands", async () => {
    const first = await home.start();
    const ipamResult = { ips: [{ address: "10.78.7.7/16", gateway: "10.78.0.1" }], routes: [{ dst: "0.0.0.0/0" }] };
    const conf = { ipam: { type: "host-local" }, ipamResult };
    resultOf(await home.cmd("cmdAdd", "again", { netns: await addPod("again1"), conf }));
    first.signal("SIGSTOP");
    {
      using store = await home.store();
      store.recordPendingDetach(ownerOf("again"));
    }
    const netns = await addPod("again2");
    const add = home.cmd("cmdAdd", "again", { netns, conf });
    first.signal("SIGCONT");
    resultOf(await add);
    await Bun.sleep(500);
    expect(await home.containers()).toEqual(["again"]);
    expect(await sandbox.ping(netns, "10.78.0.1")).toBe(true);
    const { interfaces } = await home.call(nodeService.listInterfaces, {});
    expect(interfaces[0]?.ownLease).toBe(false);
    using store = await home.store();
    expect(store.pendingDetaches()).toEqual([]);
  });

  test("peers 14: the runtime's file comes last, is left alone when it is right, and stays on stop", async () => {
    const conflict = join(dirname(home.conflist), "10-pipette.conflist");
    expect(conflict).toBe(home.conflist);
    const first = home.spawn();
    await first.logged((line) => line["message"] === "reconciled");
    await first.logged((line) => line["message"] === "ready");
    const messages = first.lines.map((line) => line["message"]);
    expect(messages.indexOf("wrote the network configuration")).toBeGreaterThan(messages.indexOf("reconciled"));
    const written = statSync(home.conflist);
    expect(written.mode & 0o777).toBe(0o600);
    expect(statSync(dirname(home.socket)).mode & 0o777).toBe(0o750);
    expect(statSync(home.socket).mode & 0o777).toBe(0o700);
    expect(JSON.parse(readFileSync(home.conflist, "utf8"))).toMatchObject({
      cniVersion: "1.0.0",
      cniVersions: ["1.0.0", "1.1.0"],
      name: "pods",
      plugins: [{ type: "pipette", socket: home.socket, dataDir: home.dataDir, ipam: { dataDir: home.dataDir } }],
    });
    expect(await first.end()).toBe(0);
    expect(existsSync(home.conflist)).toBe(true);
    const second = await home.start();
    expect(statSync(home.conflist).ino).toBe(written.ino);
    await second.end();
    writeFileSync(home.conflist, "{}");
    await home.start();
    expect(JSON.parse(readFileSync(home.conflist, "utf8")).name).toBe("pods");
  });

  test.each(["/", "@"])(
    "systemd hears of readiness and of the stop, by a socket whose name begins with %s",
    async (kind) => {
      const name = `${kind === "@" ? "@" : ""}${join(home.directory, "notify")}`;
      using socket = new DatagramSocket(name);
      const agent = await home.start({ NOTIFY_SOCKET: name });
      // The log says it first.
      expect(await eventually(() => socket.receive(), "a datagram")).toBe("READY=1");
      expect(existsSync(home.conflist)).toBe(true);
      await agent.end();
      expect(socket.receive()).toBe("STOPPING=1");
    },
  );

  test("peers 14: a node that cannot be prepared ends the agent with the reason, and no file for the runtime", async () => {
    await sandbox.node(`ip link add ${bridgeName} type veth peer name ptdpeer`);
    const agent = home.spawn();
    expect(await agent.ended()).toBe(1);
    expect(agent.lines.at(-1)).toMatchObject({ level: "error", message: expect.stringContaining(bridgeName) });
    expect(existsSync(home.conflist)).toBe(false);
    expect(existsSync(home.socket)).toBe(false);
  });

  test("pipette status: a table for people, JSON for programs, and a sentence when nobody is there", async () => {
    const status = async (...args: string[]): Promise<{ code: number; out: string; err: string }> => {
      const command = new AgentProcess([...home.command, "status", "--socket", home.socket, ...args]);
      return { code: await command.ended(), out: command.stdout, err: command.stderr };
    };
    const down = await status();
    expect(down).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringContaining("Cannot reach the agent: nobody serves"),
    });
    await home.start();
    const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web";
    resultOf(await home.cmd("cmdAdd", "shown", { netns: await addPod("shown"), args }));
    const table = await status();
    expect(table).toMatchObject({ code: 0, err: "" });
    expect(table.out).toMatch(/pods +2 +0 +0 +1/);
    expect(table.out).toMatch(/pods +shown +eth0 +10\.78\.\S+,fd78::\S+ +default\/web/);
    const json = JSON.parse((await status("--json")).out);
    expect(json.leases).toHaveLength(2);
    expect(json.interfaces).toMatchObject([{ containerId: "shown", ownLease: true }]);
    const wrong = await status("--nonsense");
    expect(wrong.code).toBe(2);
  });
});

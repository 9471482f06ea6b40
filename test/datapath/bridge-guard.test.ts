import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { EtherType, ethernet, ipv4, Protocol, udp } from "../support/frames/frame.ts";
import type { Party } from "../support/frames/pod-frames.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, failureOf, ipamOf, openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";
import { gatewayOf, type WiredPod, wirePod } from "./bridge-pods.ts";

const table = `pipette-${bridgeName}`;

describeWith("packet rules about pods on a kernel bridge", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let a: WiredPod;
  let b: WiredPod;
  let log: string[];

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-gd-");
  });
  beforeEach(async () => {
    log = [];
    dataPath = openDataPath({}, log);
    await dataPath.start();
    a = await wirePod(sandbox, dataPath, "a", 10);
    b = await wirePod(sandbox, dataPath, "b", 11);
  });
  afterEach(async () => {
    for (const { wire } of [a, b]) wire[Symbol.dispose]();
    for (const { owner } of await dataPath.list()) await dataPath.detach(owner);
    await dataPath[Symbol.asyncDispose]();
    for (const { netns } of [a, b]) await sandbox.removePod(netns);
    await sandbox.node("nft flush ruleset");
    await sandbox.node(`ip link del ${bridgeName}`);
    expect(log).toEqual([]);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  /** Another process in place of the agent, which knows nothing. */
  async function restart(leases: Readonly<Record<string, readonly string[]>> = {}): Promise<void> {
    await dataPath[Symbol.asyncDispose]();
    dataPath = openDataPath({}, log, leases);
    await dataPath.start();
  }

  const listed = (family: "bridge" | "inet"): Promise<string> => sandbox.node(`nft -s list table ${family} ${table}`);
  const everything = async (): Promise<string> => `${await listed("bridge")}\n${await listed("inet")}`;

  /** Whether a packet from `pod` with this source comes to the other. */
  async function comesThrough(pod: WiredPod, to: WiredPod, ip4: string, mac = pod.mac): Promise<boolean> {
    const ends = { from: ip4, to: to.ip4 };
    to.wire.received();
    const packet = ipv4(ends, Protocol.udp, udp(ends, { from: 7, to: 9 }, [1, 2, 3]));
    pod.wire.send(ethernet({ from: mac, to: to.mac }, EtherType.ipv4, packet));
    // By the same way, and later.
    expect(await sandbox.ping(pod.netns, to.ip4)).toBe(true);
    return to.wire.received().some((frame) => Buffer.from(frame).includes(packet));
  }
  const isGuarded = async (): Promise<boolean> =>
    (await comesThrough(a, b, a.ip4)) && !(await comesThrough(a, b, "10.77.0.12"));

  test("flushed by somebody: told, and put back whole, by this agent and by the next", async () => {
    expect(await isGuarded()).toBe(true);
    expect(await dataPath.problems()).toEqual([]);
    const whole = await everything();
    for (const again of [() => dataPath.start(), () => restart()]) {
      await sandbox.node("nft flush ruleset");
      expect(await isGuarded()).toBe(false);
      expect((await dataPath.problems()).map(({ code, message }) => `${code} ${message}`)).toEqual([
        `51 the packet rules about pods are not all there in the table "bridge ${table}"`,
        `51 the packet rules about pods are not all there in the table "inet ${table}"`,
        expect.stringMatching(`^51 0 of . packet rules stand in the table "${table}"$`),
      ]);
      await again();
      expect(await dataPath.problems()).toEqual([]);
      expect(await everything()).toBe(whole);
      expect(await isGuarded()).toBe(true);
    }
  });

  test("stand whole at every moment while they are made anew, by this agent and by the next", async () => {
    const whole = await everything();
    for (const again of [() => dataPath.start(), () => restart()]) {
      let made = false;
      const making = again().then(() => {
        made = true;
      });
      // The kernel shows what stands between two transactions, and now and then chains that one of them declares and
      // deletes: 208 of 4,529 times with Linux 6.18 and nft alone. They have neither hook nor rules.
      for (let look = 0; !made && look < 100; look++)
        expect((await everything()).replaceAll(/\n\n\tchain \S+ \{\n\t\}/g, "")).toBe(whole);
      await making;
      expect(await everything()).toBe(whole);
    }
  });

  test("replace what somebody else has put in their place", async () => {
    const whole = await everything();
    await sandbox.node(`nft delete table inet ${table}`);
    await sandbox.node(`nft add table inet ${table}`);
    await sandbox.node(`nft add chain inet ${table} loopback { type filter hook input priority 0 ; }`);
    await dataPath.start();
    expect(await everything()).toBe(whole);
    expect(await isGuarded()).toBe(true);
  });

  test("a pod that comes when they are gone brings them back, for all", async () => {
    await sandbox.node("nft flush ruleset");
    const c = await wirePod(sandbox, dataPath, "c", 12);
    expect(await isGuarded()).toBe(true);
    expect(await comesThrough(c, b, "10.77.0.99")).toBe(false);
    expect(await sandbox.ping(c.netns, a.ip6)).toBe(true);
    // Those that are about no pod the agent's next look puts back.
    expect((await dataPath.problems()).filter(({ message }) => message.includes("about pods"))).toEqual([]);
    c.wire[Symbol.dispose]();
    await dataPath.detach(ownerOf("c"));
    await sandbox.removePod(c.netns);
  });

  test("where they cannot be set up no pod is attached, and those that stand keep their network", async () => {
    await sandbox.node("nft flush ruleset");
    await sandbox.node(`nft add table bridge ${table}`);
    await sandbox.node(`nft add set bridge ${table} ports { type ipv4_addr ; }`);
    const netns = await sandbox.addPod();
    const error = await failureOf(dataPath.attach(requestFor("c", netns, 12)));
    expect(error).toMatchObject({ code: 102, message: expect.stringContaining('cannot create the set "ports"') });
    expect(await dataPath.list()).toHaveLength(2);
    expect(JSON.parse(await sandbox.pod(netns, "ip -j link"))).toHaveLength(1);
    await dataPath.start();
    expect(log.splice(0).join()).toContain('Cannot set up the packet rules of the bridge \\"ptc0\\"');
    expect((await dataPath.problems()).map(({ message }) => message)).toEqual([
      `the packet rules about pods are not all there in the table "bridge ${table}"`,
    ]);
    expect(await sandbox.ping(a.netns, b.ip4)).toBe(true);
    await sandbox.node(`nft delete table bridge ${table}`);
    await dataPath.attach(requestFor("c", netns, 12));
    expect(await dataPath.problems()).toEqual([]);
    expect(await isGuarded()).toBe(true);
    await dataPath.detach(ownerOf("c"));
    await sandbox.removePod(netns);
  });

  test.each([
    ["a rule", `nft flush chain bridge ${table} pod-icmpv6`, /not all there in the table "bridge/],
    ["the rules about absent pods", `nft flush chain inet ${table} absent-forward`, /not all there in the table "inet/],
    ["ports", `nft flush set bridge ${table} ports`, /lack 2 elements in the table "bridge/],
    ["addresses", `nft flush set bridge ${table} pods4`, /lack 2 elements in the table "bridge/],
    ["who is present", `nft flush set inet ${table} pods6`, /lack 2 elements in the table "inet/],
    [
      "a declared MAC",
      "bridge fdb del MAC dev HOST master",
      /^1 port is without its pod.s hardware address on the bridge "ptc0"$/,
    ],
  ])("taken away by somebody: %s", async (_name, command, says) => {
    const whole = await everything();
    await sandbox.node(command.replace("MAC", a.mac).replace("HOST", a.host));
    expect((await dataPath.problems()).map(({ message }) => message)).toEqual([expect.stringMatching(says)]);
    await dataPath.start();
    expect(await dataPath.problems()).toEqual([]);
    expect(await everything()).toBe(whole);
    expect(await isGuarded()).toBe(true);
  });

  test.each([
    ["an element", `nft flush set bridge ${table} pods6`, "the packet rules about"],
    ["the port's element", `nft flush set bridge ${table} ports`, "the packet rules about"],
    ["the declared MAC", "bridge fdb del MAC dev HOST master", "hardware address at the port"],
  ])("CHECK misses %s, and ADD again brings it back", async (_name, command, says) => {
    const result = await dataPath.attach(requestFor("a", a.netns, 10));
    await dataPath.check(ownerOf("a"), a.netns, result);
    await sandbox.node(command.replace("MAC", a.mac).replace("HOST", a.host));
    const error = await failureOf(dataPath.check(ownerOf("a"), a.netns, result));
    expect(error).toMatchObject({ code: 103, message: expect.stringContaining(says) });
    expect(await dataPath.attach(requestFor("a", a.netns, 10))).toEqual(result);
    await dataPath.check(ownerOf("a"), a.netns, result);
  });

  test("what a pod gives itself changes nothing, whichever agent looks, and whatever was flushed meanwhile", async () => {
    await sandbox.pod(a.netns, "ip addr add 10.77.0.12/24 dev eth0");
    await sandbox.pod(a.netns, "ip link set eth0 address 02:00:00:00:00:99");
    await restart();
    expect(await listed("bridge")).not.toMatch(/10\.77\.0\.12|02:00:00:00:00:99/);
    // The lease and the declared MAC are left then.
    await sandbox.node("nft flush ruleset");
    await restart({ a: [a.ip4, a.ip6], b: [b.ip4, b.ip6] });
    expect(await listed("bridge")).not.toMatch(/10\.77\.0\.12|02:00:00:00:00:99/);
    expect(await listed("bridge")).toContain(`${a.mac} . ${a.ip4}`);
    const result = await dataPath.attach(requestFor("a", a.netns, 10));
    expect(result.interfaces[2]?.mac).toBe(a.mac);
    expect(await sandbox.pod(a.netns, "ip link show eth0")).toContain(a.mac);
  });

  test("pods that an earlier release has wired are guarded from the start on, without losing a packet", async () => {
    const whole = await everything();
    await sandbox.node("nft flush ruleset");
    for (const { host, mac } of [a, b]) {
      await sandbox.node(`bridge link set dev ${host} learning on flood on guard off locked off`);
      await sandbox.node(`bridge fdb del ${mac} dev ${host} master`);
    }
    const pings = sandbox.pod(a.netns, `ping -n -q -i 0.01 -c 100 ${b.ip4}`);
    await restart();
    expect(await pings).toContain("100 received");
    expect(await everything()).toBe(whole);
    expect(await isGuarded()).toBe(true);
    const port = await sandbox.node(`bridge -d link show dev ${a.host}`);
    expect(port).toMatch(/guard on .*learning off flood off /);
  });

  test("an earlier agent that takes over wires pods, whose ports the rules do not speak of", async () => {
    // At its start it makes the table of the masquerade rules anew; a port's element it does not know.
    await sandbox.node(`nft delete table inet ${table}`);
    await sandbox.node(`nft delete element bridge ${table} ports { ${a.host} }`);
    await sandbox.node("sysctl -q -e -w net.bridge.bridge-nf-call-iptables=1");
    expect(await sandbox.ping(a.netns, b.ip4)).toBe(true);
    expect(await sandbox.ping(undefined, a.ip6)).toBe(true);
    expect(await comesThrough(b, a, "10.77.0.12")).toBe(false);
  });

  test("nothing of a pod is left when it has gone, with its DEL or without", async () => {
    const before = await everything();
    const gone = await wirePod(sandbox, dataPath, "gone", 20);
    const lost = await wirePod(sandbox, dataPath, "lost", 21);
    for (const { wire } of [gone, lost]) wire[Symbol.dispose]();
    await dataPath.detach(ownerOf("gone"));
    await sandbox.removePod(lost.netns);
    await expect.poll(async () => (await dataPath.list()).length).toBe(2);
    expect(await listed("inet")).toContain("10.77.0.21");
    // Its address may be another's before it is missed.
    const next = await wirePod(sandbox, dataPath, "next", 21);
    await dataPath.detach(ownerOf("lost"));
    expect(await sandbox.ping(undefined, next.ip4)).toBe(true);
    await dataPath.detach(ownerOf("next"));
    expect(await everything()).toBe(before);
    // And what an agent that was killed has left.
    const left = await wirePod(sandbox, dataPath, "left", 22);
    for (const { wire } of [next, left]) wire[Symbol.dispose]();
    await sandbox.removePod(left.netns);
    await expect.poll(async () => (await dataPath.list()).length).toBe(2);
    await restart();
    expect(await everything()).toBe(before);
    for (const { netns } of [gone, next]) await sandbox.removePod(netns);
  });

  test("no pod gets the gateway's hardware address, or another pod's", async () => {
    const gateway: Party = await gatewayOf(sandbox);
    const netns = await sandbox.addPod();
    const before = await everything();
    for (const [mac, holder] of [
      [gateway.mac, `the bridge "${bridgeName}"`],
      [b.mac, 'sandbox "b"'],
    ] as const) {
      const error = await failureOf(dataPath.attach({ ...requestFor("c", netns, 12), mac }));
      expect(error).toMatchObject({ code: 102, message: expect.stringContaining(`"${mac}": ${holder} has it`) });
    }
    expect(await everything()).toBe(before);
    expect(await dataPath.list()).toHaveLength(2);
    await dataPath.attach({ ...requestFor("c", netns, 12), mac: "02:00:5e:10:00:01" });
    expect(await sandbox.ping(netns, b.ip6)).toBe(true);
    await dataPath.detach(ownerOf("c"));
    await sandbox.removePod(netns);
  });

  test("a pod of one family, or with several addresses, speaks from these alone", async () => {
    const netns = await sandbox.addPod();
    const ipam = ipamOf(["10.77.0.12/24", "10.77.0.13/24"]);
    await dataPath.attach({ ...requestFor("c", netns, 12), ipam });
    for (const own of ["10.77.0.12", "10.77.0.13"])
      await sandbox.pod(netns, `ping -n -q -c 1 -W 2 -I ${own} 10.77.0.10`);
    await sandbox.pod(netns, "ip addr add 10.77.0.14/24 dev eth0");
    await expect(sandbox.pod(netns, "ping -n -q -c 1 -W 1 -I 10.77.0.14 10.77.0.10")).rejects.toThrow(
      "100% packet loss",
    );
    await dataPath.detach(ownerOf("c"));
    await sandbox.removePod(netns);
  });
});

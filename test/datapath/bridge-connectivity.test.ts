import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { EtherType, ethernet, ipv4, Protocol, udp } from "../support/frames/frame.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, cidr, ip, ipamOf, openDataPath, requestFor } from "./bridge-fixture.ts";
import { wireOf } from "./bridge-pods.ts";

describeWith("bridge data path: who reaches whom", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  const open: DataPath[] = [];

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-cc-");
  });
  afterEach(async () => {
    for (const dataPath of open.splice(0)) {
      for (const { owner } of await dataPath.list()) await dataPath.detach(owner);
      await dataPath[Symbol.asyncDispose]();
    }
    await sandbox.node(`ip link del ${bridgeName}`);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  async function started(...args: Parameters<typeof openDataPath>): Promise<DataPath> {
    const dataPath = openDataPath(...args);
    open.push(dataPath);
    await dataPath.start();
    return dataPath;
  }

  test("pods reach each other, the gateway and the node reaches them, in both families at once", async () => {
    const dataPath = await started();
    const [a, b] = [await sandbox.addPod(), await sandbox.addPod()];
    await dataPath.attach(requestFor("a", a, 10));
    await dataPath.attach(requestFor("b", b, 11));
    // An address that is still being probed for duplicates cannot be bound.
    expect(await sandbox.pod(b, "ip -6 -o addr show dev eth0 scope global tentative")).toBe("");
    for (const address of ["10.77.0.11", "fd77::11", "10.77.0.1", "fd77::1"]) {
      expect.soft(await sandbox.ping(a, address), `pod to ${address}`).toBe(true);
    }
    for (const address of ["10.77.0.10", "fd77::10"]) {
      expect.soft(await sandbox.ping(undefined, address), `node to ${address}`).toBe(true);
    }
    expect(await sandbox.pod(a, "ip -br link show lo")).toContain("UP");
  });

  test.each([
    ["IPv4 alone", "10.77.0.20/24", "10.77.0.1"],
    ["IPv6 alone", "fd77::20/64", "fd77::1"],
  ])("%s", async (_name, address, gateway) => {
    const dataPath = await started({ subnets: [cidr(address.includes(":") ? "fd77::/64" : "10.77.0.0/24")] });
    const pod = await sandbox.addPod();
    const result = await dataPath.attach({ ...requestFor("a", pod, 20), ipam: ipamOf([address]) });
    expect(await sandbox.ping(pod, gateway)).toBe(true);
    expect(result.ips).toEqual([{ address: cidr(address), gateway: ip(gateway), interface: 2 }]);
    expect(await sandbox.node(`ip -br addr show ${bridgeName} scope global`)).not.toContain(
      address.includes(":") ? "10.77" : "fd77",
    );
  });

  test("IPv6 also where the sandbox came with it turned off", async () => {
    const dataPath = await started();
    const pod = await sandbox.addPod();
    await sandbox.pod(pod, "sysctl -q net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1");
    await dataPath.attach(requestFor("a", pod, 21));
    expect(await sandbox.ping(pod, "fd77::1")).toBe(true);
  });

  test("masquerade hides pods from the outside, and only there", async () => {
    const outside = await sandbox.addPod("outside");
    const name = outside.slice(outside.lastIndexOf("/") + 1);
    await sandbox.node(`ip link add up0 type veth peer name up1 netns ${name}`);
    await sandbox.node("ip addr add 192.0.2.1/24 dev up0");
    await sandbox.node("ip link set up0 up");
    await sandbox.pod(outside, "ip addr add 192.0.2.2/24 dev up1");
    await sandbox.pod(outside, "ip link set up1 up");
    const pod = await sandbox.addPod();
    const request = requestFor("a", pod, 30);

    // The outside knows no way back to the pods.
    const plain = await started({ masquerade: false });
    await plain.attach(request);
    expect(await sandbox.ping(pod, "192.0.2.2")).toBe(false);

    const masquerading = await started({ masquerade: true });
    expect(await sandbox.ping(pod, "192.0.2.2")).toBe(true);
    const other = await sandbox.addPod();
    await masquerading.attach(requestFor("b", other, 31));
    await sandbox.pod(other, "nft add table inet seen");
    await sandbox.pod(other, "nft add chain inet seen in { type filter hook input priority 0 ; }");
    await sandbox.pod(other, "nft add rule inet seen in ip saddr 10.77.0.30 counter");
    expect(await sandbox.ping(pod, "10.77.0.31")).toBe(true);
    expect(await sandbox.pod(other, "nft list chain inet seen in")).toMatch(/counter packets [1-9]/);

    // Turned off again, its rules are gone; those that guard the node stay.
    await started({ masquerade: false });
    const rules = await sandbox.node("nft list ruleset");
    expect([rules.includes("masquerade"), rules.includes("chain loopback")]).toEqual([false, true]);
    await sandbox.node("ip link del up0");
  });

  test.each([true, false])("hairpin %s: a frame comes back by its own port, or not", async (hairpin) => {
    const dataPath = await started({ hairpin });
    const pod = await sandbox.addPod();
    const { interfaces } = await dataPath.attach(requestFor("a", pod, 40));
    const port = JSON.parse(await sandbox.node(`bridge -j -d link show dev ${interfaces[1]?.name}`));
    expect(port[0].hairpin).toBe(hairpin);
    // To its own address by way of the bridge, as with a service that leads to the pod itself.
    using wire = await wireOf(pod);
    const mac = interfaces[2]?.mac ?? "";
    const ends = { from: "10.77.0.40", to: "10.77.0.40" };
    const packet = ipv4(ends, Protocol.udp, udp(ends, { from: 1, to: 9 }, [1]));
    wire.send(ethernet({ from: mac, to: mac }, EtherType.ipv4, packet));
    expect(await sandbox.ping(pod, "10.77.0.1")).toBe(true);
    const own = wire.received().filter((frame) => Buffer.from(frame).includes(packet));
    expect(own.length).toBe(hairpin ? 1 : 0);

    // Switched in the configuration later, it changes for the pods that stand, too.
    await started({ hairpin: !hairpin });
    const switched = JSON.parse(await sandbox.node(`bridge -j -d link show dev ${interfaces[1]?.name}`));
    expect(switched[0]).toMatchObject({ hairpin: !hairpin, learning: false });
  });

  test("the node forgets what it knew of an address, even by hand", async () => {
    const dataPath = await started();
    const pod = await sandbox.addPod();
    for (const address of ["10.77.0.70", "fd77::70"]) {
      await sandbox.node(`ip neigh add ${address} lladdr 02:00:00:00:00:70 dev ${bridgeName} nud permanent`);
    }
    await dataPath.attach(requestFor("a", pod, 70));
    expect(await sandbox.ping(undefined, "10.77.0.70")).toBe(true);
    expect(await sandbox.ping(undefined, "fd77::70")).toBe(true);
  });

  test("an address given to another pod at once is reached at once", async () => {
    const dataPath = await started();
    const [first, second, neighbour] = [await sandbox.addPod(), await sandbox.addPod(), await sandbox.addPod()];
    await dataPath.attach(requestFor("neighbour", neighbour, 60));
    const before = await dataPath.attach(requestFor("first", first, 61));
    for (const path of [neighbour, undefined]) {
      expect(await sandbox.ping(path, "10.77.0.61")).toBe(true);
      expect(await sandbox.ping(path, "fd77::61")).toBe(true);
    }
    await dataPath.detach({ network: "pods", sandboxId: "first", ifname: "eth0" });
    const after = await dataPath.attach(requestFor("second", second, 61));
    expect(after.interfaces[2]?.mac).not.toBe(before.interfaces[2]?.mac);
    // One packet each: no time for the caches to give up by themselves.
    for (const [from, path] of [
      ["the node", undefined],
      ["a neighbour", neighbour],
    ] as const) {
      expect.soft(await sandbox.ping(path, "10.77.0.61", "one"), `IPv4 from ${from}`).toBe(true);
      expect.soft(await sandbox.ping(path, "fd77::61", "one"), `IPv6 from ${from}`).toBe(true);
    }
  });
});

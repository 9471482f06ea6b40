import { writeFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, cidr, failureOf, ip, ipamOf, openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";

/** Groups of interfaces half made and half deleted: fixed, because an upgraded agent has to know them. */
const arriving = 0x70697001;
const leaving = 0x70697002;

describeWith("bridge data path: life of a pod", ["root"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let log: string[];

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-cl-");
  });
  beforeEach(async () => {
    log = [];
    dataPath = openDataPath({}, log);
    await dataPath.start();
  });
  afterEach(async () => {
    for (const { owner } of await dataPath.list()) await dataPath.detach(owner);
    await dataPath[Symbol.asyncDispose]();
    expect(await pairs()).toEqual([]);
    await sandbox.node(`ip link del ${bridgeName}`);
    expect(log).toEqual([]);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  /** Names of the host's ends, leaving ones too. */
  const pairs = async (): Promise<string[]> =>
    JSON.parse(await sandbox.node("ip -j link show type veth")).map((link: { ifname: string }) => link.ifname);

  const podLinks = async (pod: string): Promise<string[]> =>
    JSON.parse(await sandbox.pod(pod, "ip -j link")).map((link: { ifname: string }) => link.ifname);

  /** Everything of a pod that must not change when an ADD comes again. */
  /** Without what the kernel's own link-local address goes through in its first second or two. */
  const stateOf = async (pod: string): Promise<string> =>
    (await sandbox.pod(pod, "ip -j addr show dev eth0")).replace('"tentative":true,', "") +
    (await sandbox.pod(pod, "ip route"));

  test("the result names bridge, host end and sandbox, and passes routes and DNS through", async () => {
    const pod = await sandbox.addPod();
    const result = await dataPath.attach(requestFor("a", pod, 10));
    const [bridge, host, inside] = result.interfaces;
    expect(bridge?.name).toBe(bridgeName);
    expect(host?.name).toMatch(/^web-a-[a-z0-9]{6}$/);
    expect(inside).toMatchObject({ name: "eth0", sandbox: pod, mtu: 1500 });
    expect(await sandbox.pod(pod, "ip link show eth0")).toContain(inside?.mac);
    expect(await sandbox.node(`ip link show ${host?.name}`)).toContain(host?.mac);
    expect(result.ips).toEqual([
      { address: cidr("10.77.0.10/24"), gateway: ip("10.77.0.1"), interface: 2 },
      { address: cidr("fd77::10/64"), gateway: ip("fd77::1"), interface: 2 },
    ]);
    const { routes, dns } = ipamOf(["10.77.0.10/24", "fd77::10/64"]);
    expect(result.routes).toEqual(routes);
    expect(result.dns).toEqual(dns);
    expect(await dataPath.list()).toEqual([
      { owner: ownerOf("a"), ownLease: true, hostIfname: host?.name, mac: inside?.mac, port: expect.any(Number) },
    ]);
  });

  test("MTU and hardware address as asked for; routes with their own gateway, metric and table", async () => {
    const pod = await sandbox.addPod();
    const request = requestFor("a", pod, 10);
    const routes = [
      { dst: cidr("0.0.0.0/0") },
      { dst: cidr("198.51.100.0/24"), gw: ip("10.77.0.9"), priority: 7, mtu: 1300 },
      { dst: cidr("203.0.113.0/24"), table: 1000 },
    ];
    const result = await dataPath.attach({
      ...request,
      mtu: 1400,
      mac: "02-00-5E-10-00-01",
      ipam: { ...request.ipam, routes },
    });
    expect(result.interfaces[2]).toMatchObject({ mac: "02:00:5e:10:00:01", mtu: 1400 });
    const table = await sandbox.pod(pod, "ip route show table all");
    expect(table).toContain("default via 10.77.0.1 dev eth0");
    expect(table).toContain("198.51.100.0/24 via 10.77.0.9 dev eth0 metric 7 mtu 1300");
    expect(table).toContain("203.0.113.0/24 via 10.77.0.1 dev eth0 table 1000");
    await dataPath.check(request.owner, pod, result);
  });

  test("the same request again gives the same answer and touches nothing", async () => {
    const pod = await sandbox.addPod();
    const first = await dataPath.attach(requestFor("a", pod, 10));
    const before = await stateOf(pod);
    expect(await dataPath.attach(requestFor("a", pod, 10))).toEqual(first);
    expect(await stateOf(pod)).toBe(before);
    expect(await pairs()).toHaveLength(1);
  });

  test("another agent process finds everything again: list, ADD, CHECK, DEL", async () => {
    const [a, b] = [await sandbox.addPod(), await sandbox.addPod()];
    const first = await dataPath.attach(requestFor("a", a, 10));
    await dataPath.attach({ ...requestFor("b", b, 11), ownLease: false });
    const before = await stateOf(a);
    const listed = await dataPath.list();
    await dataPath[Symbol.asyncDispose]();
    dataPath = openDataPath({}, log);
    await dataPath.start();
    expect(await dataPath.list()).toEqual(listed);
    expect(listed.map((one) => one.ownLease).sort()).toEqual([false, true]);
    await dataPath.check(ownerOf("a"), a, first);
    expect(await dataPath.attach(requestFor("a", a, 10))).toEqual(first);
    expect(await stateOf(a)).toBe(before);
    await dataPath.detach(ownerOf("a"));
    expect((await dataPath.list()).map((one) => one.owner.sandboxId)).toEqual(["b"]);
  });

  test("what a killed ADD left without addresses is completed by the next", async () => {
    const pod = await sandbox.addPod();
    const first = await dataPath.attach(requestFor("a", pod, 10));
    await sandbox.pod(pod, "ip link set eth0 down");
    await sandbox.pod(pod, "ip addr flush dev eth0");
    await sandbox.node(`ip link set ${first.interfaces[1]?.name} nomaster down`);
    expect(await dataPath.attach(requestFor("a", pod, 10))).toEqual(first);
    await dataPath.check(ownerOf("a"), pod, first);
    expect(await sandbox.ping(pod, "10.77.0.1")).toBe(true);
  });

  test("start removes pairs that a killed ADD had not yet named, and those that a killed DEL left", async () => {
    const [a, b] = [await sandbox.addPod(), await sandbox.addPod()];
    const name = b.slice(b.lastIndexOf("/") + 1);
    await sandbox.node(
      `ip link add half master ${bridgeName} group ${arriving} type veth peer name eth0 netns ${name}`,
    );
    const { interfaces } = await dataPath.attach(requestFor("a", a, 10));
    await sandbox.node(`ip link set ${interfaces[1]?.name} down nomaster group ${leaving}`);
    expect(await dataPath.list()).toEqual([]);
    await dataPath[Symbol.asyncDispose]();
    await sandbox.node(`ip link add foreign master ${bridgeName} type veth peer name eth9 netns ${name}`);
    dataPath = openDataPath({}, log);
    await dataPath.start();
    expect(await pairs()).toEqual(["foreign"]);
    expect(await podLinks(b)).toEqual(["lo", "eth9"]);
    await sandbox.node("ip link del foreign");
  });

  test("a restarted sandbox, the same id in another namespace, is wired anew", async () => {
    const [a, b] = [await sandbox.addPod(), await sandbox.addPod()];
    const first = await dataPath.attach(requestFor("a", a, 10));
    const second = await dataPath.attach(requestFor("a", b, 10));
    expect(second.interfaces[2]).toEqual({ ...first.interfaces[2], sandbox: b });
    expect(await podLinks(a)).toEqual(["lo"]);
    expect(await sandbox.ping(b, "fd77::1")).toBe(true);
    expect(await pairs()).toHaveLength(1);
  });

  test("an address that IPAM has changed since replaces the old one", async () => {
    const pod = await sandbox.addPod();
    await dataPath.attach(requestFor("a", pod, 10));
    await dataPath.attach(requestFor("a", pod, 12));
    expect(await sandbox.pod(pod, "ip -br addr show eth0")).not.toContain("10.77.0.10/");
    expect(await sandbox.ping(undefined, "10.77.0.12")).toBe(true);
  });

  test("detach twice, of what never was, and after the namespace went away", async () => {
    const [a, b] = [await sandbox.addPod(), await sandbox.addPod()];
    await dataPath.attach(requestFor("a", a, 10));
    await dataPath.attach(requestFor("b", b, 11));
    await dataPath.detach(ownerOf("a"));
    await dataPath.detach(ownerOf("a"));
    await dataPath.detach(ownerOf("never"));
    await sandbox.removePod(b);
    await dataPath.detach(ownerOf("b"));
    expect(await dataPath.list()).toEqual([]);
  });

  test("detached means unreachable, before the interface is gone", async () => {
    const pod = await sandbox.addPod();
    await dataPath.attach(requestFor("a", pod, 10));
    expect(await sandbox.ping(undefined, "10.77.0.10")).toBe(true);
    await dataPath.detach(ownerOf("a"));
    expect(await sandbox.ping(undefined, "10.77.0.10", "one")).toBe(false);
    await expect(dataPath.check(ownerOf("a"), pod, ipamOf([]))).rejects.toMatchObject({ code: 103 });
  });

  test("the same owner with the same addresses comes back right after DEL", async () => {
    const pod = await sandbox.addPod();
    const first = await dataPath.attach(requestFor("a", pod, 10));
    for (let i = 0; i < 5; i++) {
      await dataPath.detach(ownerOf("a"));
      expect(await dataPath.attach(requestFor("a", pod, 10))).toEqual(first);
    }
    expect(await sandbox.ping(pod, "10.77.0.1")).toBe(true);
    expect(await pairs()).toHaveLength(1);
  });

  test("another sandbox in the same namespace gets the interface name that a retired pair still holds", async () => {
    const pod = await sandbox.addPod();
    const { interfaces } = await dataPath.attach(requestFor("a", pod, 10));
    // Retired by an agent that was killed before it swept.
    await sandbox.node(`ip link set ${interfaces[1]?.name} down nomaster group ${leaving}`);
    await dataPath.attach(requestFor("b", pod, 10));
    expect(await sandbox.ping(pod, "10.77.0.1")).toBe(true);
    expect(await pairs()).toHaveLength(1);
  });

  test("a second name that somebody took off is no way to lose an interface", async () => {
    const pod = await sandbox.addPod();
    const result = await dataPath.attach(requestFor("a", pod, 10));
    const name = result.interfaces[1]?.name;
    const [link] = JSON.parse(await sandbox.node(`ip -j link show ${name}`));
    await sandbox.node(`ip link property del dev ${name} altname ${link.altnames[0]}`);
    expect(await dataPath.attach(requestFor("a", pod, 10))).toEqual(result);
    expect(await sandbox.node(`ip link show ${name}`)).toContain(link.altnames[0]);
    await sandbox.node(`ip link property del dev ${name} altname ${link.altnames[0]}`);
    await dataPath.attach(requestFor("a", pod, 12));
    expect(await sandbox.ping(pod, "10.77.0.1")).toBe(true);
    await sandbox.node(`ip link property del dev ${name} altname ${link.altnames[0]}`);
    await dataPath.detach(ownerOf("a"));
    expect(await dataPath.list()).toEqual([]);
  });

  test("50 pods at once come and go, and no thread stays behind in a namespace", async () => {
    const pods = await Promise.all(Array.from({ length: 50 }, (_, i) => sandbox.addPod(`many${i}`)));
    const before = sandbox.threadNamespaces();
    const results = await Promise.all(pods.map((pod, i) => dataPath.attach(requestFor(`m${i}`, pod, 100 + i))));
    expect(new Set(results.map((result) => result.interfaces[1]?.name)).size).toBe(50);
    expect(new Set(results.map((result) => result.interfaces[2]?.mac)).size).toBe(50);
    expect(await dataPath.list()).toHaveLength(50);
    await Promise.all(results.map((result, i) => dataPath.check(ownerOf(`m${i}`), pods[i] ?? "", result)));
    expect(await sandbox.ping(pods[0], "10.77.0.149")).toBe(true);
    await Promise.all(pods.map((_, i) => dataPath.detach(ownerOf(`m${i}`))));
    expect(await dataPath.list()).toEqual([]);
    // Disposal waits for the sweep.
    await dataPath[Symbol.asyncDispose]();
    expect(await pairs()).toEqual([]);
    expect(await podLinks(pods[7] ?? "")).toEqual(["lo"]);
    expect(before).toEqual(expect.arrayContaining([...sandbox.threadNamespaces()]));
    for (const pod of pods) await sandbox.removePod(pod);
    dataPath = openDataPath({}, log);
    await dataPath.start();
  });

  describe("refuses, and changes nothing", () => {
    test("an interface of someone else under the name on the node", async () => {
      const pod = await sandbox.addPod();
      const { interfaces } = await dataPath.attach(requestFor("a", pod, 10));
      const name = interfaces[1]?.name;
      await dataPath.detach(ownerOf("a"));
      await dataPath[Symbol.asyncDispose]();
      dataPath = openDataPath({}, log);
      await sandbox.node(`ip link add ${name} type bridge`);
      const before = await sandbox.node(`ip -j link show ${name}`);
      const error = await failureOf(dataPath.attach(requestFor("a", pod, 10)));
      expect(error).toMatchObject({ code: 102 });
      expect(error.message).toContain(`"${name}": the node has one of that name that is not ours`);
      expect(await sandbox.node(`ip -j link show ${name}`)).toBe(before);
      expect(await podLinks(pod)).toEqual(["lo"]);
      await sandbox.node(`ip link del ${name}`);
    });

    test("an interface of someone else under the name in the sandbox", async () => {
      const pod = await sandbox.addPod();
      await sandbox.pod(pod, "ip link add eth0 type bridge");
      const before = await sandbox.pod(pod, "ip -j link");
      const error = await failureOf(dataPath.attach(requestFor("a", pod, 10)));
      expect(error).toMatchObject({ code: 102 });
      expect(error.message).toContain('"eth0": the sandbox has one of that name that is not ours, of kind "bridge"');
      expect(await sandbox.pod(pod, "ip -j link")).toBe(before);
      expect(await pairs()).toEqual([]);
    });

    test("what the kernel refuses half way: everything is undone", async () => {
      const pod = await sandbox.addPod();
      const request = requestFor("a", pod, 10);
      const routes = [{ dst: cidr("0.0.0.0/0"), gw: ip("192.0.2.1") }];
      const error = await failureOf(dataPath.attach({ ...request, ipam: { ...request.ipam, routes } }));
      expect(error).toMatchObject({ code: 102 });
      expect(error.message).toContain('add the route to "0.0.0.0/0": the kernel answers ENETUNREACH');
      expect(await pairs()).toEqual([]);
      expect(await podLinks(pod)).toEqual(["lo"]);
      await dataPath.attach(request);
    });

    test("paths that are no sandbox", async () => {
      const gone = await sandbox.addPod("gone");
      await sandbox.removePod(gone);
      const left = await sandbox.addPod("left");
      await sandbox.node(`umount ${left}`);
      writeFileSync(`/tmp/pt-cl-${process.pid}`, "");
      for (const [path, says] of [
        [gone, "does not exist"],
        [left, "is not a network namespace"],
        ["/proc/self/ns/pid", "is not a network namespace"],
        ["/proc/thread-self/ns/net", "is the network namespace of the node itself"],
        [`/tmp/pt-cl-${process.pid}/x`, "does not exist"],
      ] as const) {
        for (const call of [
          dataPath.attach(requestFor("a", path, 10)),
          dataPath.check(ownerOf("a"), path, ipamOf([])),
        ]) {
          const error = await failureOf(call);
          expect.soft(error).toMatchObject({ code: 4 });
          expect.soft(error.message).toContain(`CNI_NETNS "${path}" ${says}`);
        }
      }
      await sandbox.node(`rm /tmp/pt-cl-${process.pid}`);
      expect(await pairs()).toEqual([]);
    });

    test.each(["02:00:00:00:00", "01:00:5e:00:00:01", "00:00:00:00:00:00", "zz:00:00:00:00:00"])(
      'the hardware address "%s"',
      async (mac) => {
        const pod = await sandbox.addPod();
        const error = await failureOf(dataPath.attach({ ...requestFor("a", pod, 10), mac }));
        expect(error).toMatchObject({ code: 7 });
        expect(error.message).toContain(`"${mac}"`);
      },
    );

    test("a network that the agent does not have", async () => {
      const pod = await sandbox.addPod();
      const owner = { ...ownerOf("a"), network: "other" };
      const error = await failureOf(dataPath.attach({ ...requestFor("a", pod, 10), owner }));
      expect(error).toMatchObject({ code: 7 });
      expect(error.message).toContain('no network "other", wanted one of "pods"');
    });
  });
});

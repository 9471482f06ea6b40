import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import type { CniResult } from "../../shared/cni/types.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, cidr, failureOf, ip, openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";

describeWith("bridge data path: CHECK and problems", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let pod: string;
  let result: CniResult;
  let host: string;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ck-");
  });
  beforeEach(async () => {
    dataPath = openDataPath();
    await dataPath.start();
    pod = await sandbox.addPod();
    result = await dataPath.attach(requestFor("a", pod, 10));
    host = result.interfaces[1]?.name ?? "";
  });
  afterEach(async () => {
    for (const { owner } of await dataPath.list()) await dataPath.detach(owner);
    await dataPath[Symbol.asyncDispose]();
    await sandbox.removePod(pod);
    await sandbox.node(`ip link del ${bridgeName}`);
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const inPod = (command: string) => (): Promise<string> => sandbox.pod(pod, command);
  const onNode = (command: string) => (): Promise<string> => sandbox.node(command.replace("HOST", host));

  test("what stands as it was answered is confirmed, by this process and by another", async () => {
    await dataPath.check(ownerOf("a"), pod, result);
    await using other = openDataPath();
    await other.check(ownerOf("a"), pod, result);
  });

  test.each([
    ["pod end down", inPod("ip link set eth0 down"), `the sandbox's interface "eth0": it is down, wanted up`],
    ["host end down", onNode("ip link set HOST down"), `": it is down, wanted up`],
    ["no port", onNode("ip link set HOST nomaster"), `it is no bridge port, wanted a port of the bridge "ptc0"`],
    ["other MAC", inPod("ip link set eth0 address 02:00:00:00:00:99"), `hardware address of "eth0": it is "02:00`],
    ["other MTU", inPod("ip link set eth0 mtu 1300"), `the MTU of "eth0": it is 1300, wanted 1500`],
    ["IPv4 address missing", inPod("ip addr del 10.77.0.10/24 dev eth0"), `"10.77.0.10/24" of "eth0": it is missing`],
    ["IPv6 address missing", inPod("ip addr del fd77::10/64 dev eth0"), `"fd77::10/64" of "eth0": it is missing`],
    [
      "IPv4 route missing",
      inPod("ip route del default"),
      `the route to "0.0.0.0/0" by way of "10.77.0.1": it is missing`,
    ],
    ["IPv6 route missing", inPod("ip -6 route del default"), `the route to "::/0" by way of "fd77::1": it is missing`],
    ["other gateway", inPod("ip route replace default via 10.77.0.9"), `"0.0.0.0/0" by way of "10.77.0.1"`],
    ["renamed", inPod("ip link set eth0 name eth7"), `the sandbox's interface "eth0": it is missing`],
    ["deleted", inPod("ip link del eth0"), `the attachment of "eth0": it is missing on the node`],
    ["bridge gone", onNode(`ip link del ${bridgeName}`), `the bridge "ptc0": it is missing`],
  ] as const)("names the difference: %s", async (_name, change, says) => {
    // In one go, as `ip link set name` wants the interface down.
    await change();
    const error = await failureOf(dataPath.check(ownerOf("a"), pod, result));
    expect(error).toMatchObject({ code: 103 });
    expect(error.message).toContain(says);
    if (_name === "bridge gone") await sandbox.node(`ip link add ${bridgeName} type bridge`);
  });

  test("an interface that took the name of ours, and another sandbox's namespace", async () => {
    const other = await sandbox.addPod();
    await dataPath.attach(requestFor("b", other, 11));
    const error = await failureOf(dataPath.check(ownerOf("a"), other, result));
    expect(error.message).toContain(`the other end of "${host}": it is in another namespace`);
    await sandbox.pod(pod, "ip link set eth0 name eth7");
    await sandbox.pod(pod, "ip link add eth0 type bridge");
    const renamed = await failureOf(dataPath.check(ownerOf("a"), pod, result));
    expect(renamed.message).toContain("it is another interface, wanted the other end of our pair");
    await sandbox.removePod(other);
  });

  test("what prevResult does not know of its own interface", async () => {
    const error = await failureOf(dataPath.check(ownerOf("a"), pod, { ...result, interfaces: [] }));
    expect(error).toMatchObject({ code: 103 });
    expect(error.message).toContain("not in prevResult");
  });

  test("tolerates what plugins later in the chain add", async () => {
    await sandbox.pod(pod, "ip addr add 203.0.113.5/24 dev eth0");
    await sandbox.pod(pod, "ip route add 198.51.100.0/24 via 10.77.0.9");
    await sandbox.pod(pod, "ip route add default via 10.77.0.1 table 100");
    await sandbox.pod(pod, "ip link add net1 type bridge");
    await sandbox.pod(pod, "ip addr add 192.0.2.9/24 dev net1");
    const chained: CniResult = {
      ...result,
      interfaces: [...result.interfaces, { name: "net1", sandbox: pod }],
      ips: [...result.ips, { address: cidr("192.0.2.9/24"), interface: 3 }],
      routes: [...result.routes, { dst: cidr("198.51.100.0/24"), gw: ip("10.77.0.9") }],
    };
    await dataPath.check(ownerOf("a"), pod, chained);
    // The same request again leaves it alone, too.
    expect(await dataPath.attach(requestFor("a", pod, 10))).toEqual(result);
    await dataPath.check(ownerOf("a"), pod, chained);
  });

  test("finds the default route among two of them", async () => {
    await sandbox.pod(pod, "ip route del default");
    await sandbox.pod(pod, "ip route add default nexthop via 10.77.0.9 nexthop via 10.77.0.1");
    await dataPath.check(ownerOf("a"), pod, result);
  });

  test("problems: none, then what is wrong, with 51 as long as pods suffer from it", async () => {
    expect(await dataPath.problems()).toEqual([]);
    await sandbox.node(`ip addr del fd77::1/64 dev ${bridgeName}`);
    await sandbox.node(`ip link set ${bridgeName} down`);
    await sandbox.node("sysctl -q net.ipv4.ip_forward=0");
    expect(await dataPath.problems()).toEqual([
      { code: 51, message: 'the bridge "ptc0" is down' },
      { code: 51, message: 'the bridge "ptc0" lacks the gateway address "fd77::1/64"' },
      { code: 51, message: "IPv4 forwarding is off on the node" },
    ]);
    await dataPath.detach(ownerOf("a"));
    expect((await dataPath.problems()).map((problem) => problem.code)).toEqual([50, 50, 50]);
    await sandbox.node(`ip link del ${bridgeName}`);
    expect((await dataPath.problems())[0]).toEqual({ code: 50, message: 'the bridge "ptc0" is missing' });
    // Starting again puts all of it right.
    await dataPath.start();
    expect(await dataPath.problems()).toEqual([]);
  });

  test("a bridge that somebody deleted comes back with the next pod, and the others are on it", async () => {
    await sandbox.node(`ip link del ${bridgeName}`);
    expect((await dataPath.problems()).map((problem) => problem.message)).toEqual(['the bridge "ptc0" is missing']);
    const other = await sandbox.addPod();
    await dataPath.attach(requestFor("b", other, 11));
    await dataPath.check(ownerOf("a"), pod, result);
    expect(await sandbox.ping(other, "10.77.0.10")).toBe(true);
    await sandbox.removePod(other);
  });

  test("takes a bridge that stands, keeps what is on it, and refuses anything else of that name", async () => {
    await sandbox.node(`ip addr add 192.0.2.7/24 dev ${bridgeName}`);
    const before = await sandbox.node(`ip -j link show ${bridgeName}`);
    await using other = openDataPath();
    await other.start();
    expect(await sandbox.node(`ip -j link show ${bridgeName}`)).toBe(before);
    expect(await sandbox.node(`ip -br addr show ${bridgeName}`)).toContain("192.0.2.7/24");

    await sandbox.node("ip link add ptc9 type veth peer name ptc8");
    const links = await sandbox.node("ip -j link show ptc9");
    await using wrong = openDataPath({ bridge: "ptc9" });
    const error = await failureOf(wrong.start());
    expect(error).toMatchObject({ code: 102 });
    expect(error.message).toContain('"ptc9" as bridge: it is of kind "veth", wanted a bridge');
    expect(await sandbox.node("ip -j link show ptc9")).toBe(links);
    await sandbox.node("ip link del ptc9");
  });

  test("the bridge keeps its hardware address whatever its ports do", async () => {
    const mac = result.interfaces[0]?.mac;
    await dataPath.detach(ownerOf("a"));
    expect(await sandbox.node(`ip link show ${bridgeName}`)).toContain(mac);
    await dataPath.start();
    expect(await sandbox.node(`ip link show ${bridgeName}`)).toContain(mac);
  });
});

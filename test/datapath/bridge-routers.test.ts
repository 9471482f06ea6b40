import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { address, bytes, EtherType, ethernet, icmp6, ipv6, mac, Protocol, u32 } from "../support/frames/frame.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, cidr, ipamOf, openDataPath, requestFor } from "./bridge-fixture.ts";
import { type WiredPod, wirePod } from "./bridge-pods.ts";

/** Says that the pod is the way to everywhere, and that everybody has an address of its prefix. */
function routerAdvertisement(pod: WiredPod): Uint8Array {
  const ends = { from: pod.linkLocal, to: "ff02::1" };
  const head = bytes([64, 0, 0x07, 0x08], u32(0), u32(0));
  const prefix = bytes([3, 4, 64, 0xc0], u32(86_400), u32(14_400), u32(0), address("2001:db8:bad::"));
  const message = icmp6(ends, 134, bytes(head, [1, 1], mac(pod.mac), prefix));
  return ethernet({ from: pod.mac, to: "33:33:00:00:00:01" }, EtherType.ipv6, ipv6(ends, Protocol.icmp6, message, 255));
}

const program = new URL("./killed-agent.ts", import.meta.url).pathname;
const settings = ["ipv6/conf/IF/accept_ra", "ipv6/conf/IF/accept_redirects", "ipv4/conf/IF/accept_redirects"];
const settingsOf = (ifname: string): string =>
  settings.map((path) => `/proc/sys/net/${path.replace("IF", ifname)}`).join(" ");

describeWith("routers are not believed on a kernel bridge, whatever packet rules there are", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;
  let pod: WiredPod;
  let other: string;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ra-");
    // IPv4 alone: the node does not forward IPv6, and would listen to routers.
    dataPath = openDataPath({ subnets: [cidr("10.77.0.0/24")] });
    await dataPath.start();
    pod = await wirePod(sandbox, dataPath, "mallory", 66);
    other = await sandbox.addPod();
    await dataPath.attach({ ...requestFor("other", other, 10), ipam: ipamOf(["10.77.0.10/24"]) });
    await sandbox.node("nft flush ruleset");
  });
  afterAll(async () => {
    pod.wire[Symbol.dispose]();
    await dataPath[Symbol.asyncDispose]();
    await sandbox[Symbol.asyncDispose]();
  });

  const onNode = (): Promise<string> =>
    Promise.all(
      ["ip -6 route show default", `ip -6 addr show dev ${bridgeName}`].map((line) => sandbox.node(line)),
    ).then((lines) => lines.join("\n"));
  const inPod = (): Promise<string> =>
    Promise.all(["ip -6 route show default", "ip -6 addr show dev eth0"].map((line) => sandbox.pod(other, line))).then(
      (lines) => lines.join("\n"),
    );

  test("a pod's router advertisement configures neither the node nor another pod", async () => {
    pod.wire.send(routerAdvertisement(pod));
    await Bun.sleep(200);
    expect(await onNode()).not.toMatch(/^default|2001:db8/m);
    expect(await inPod()).not.toMatch(/^default|2001:db8/m);
    // One that is listened to says that it was a good one.
    await sandbox.node(`sysctl -q -w net.ipv6.conf.${bridgeName}.accept_ra=1`);
    await sandbox.pod(other, "sysctl -q -w net.ipv6.conf.eth0.accept_ra=1");
    expect(await dataPath.degraded()).toEqual([expect.stringContaining("believes routers on its link")]);
    pod.wire.send(routerAdvertisement(pod));
    await expect.poll(onNode).toMatch(/^default via fe80[\s\S]*2001:db8/);
    await expect.poll(inPod).toMatch(/^default via fe80[\s\S]*2001:db8/);
  });

  test("an agent that starts closes a bridge of an earlier one", async () => {
    await sandbox.node(`sysctl -q -w net.ipv6.conf.${bridgeName}.accept_ra=1`);
    await dataPath.start();
    expect(await dataPath.degraded()).toEqual([]);
    expect(await sandbox.node(`cat ${settingsOf(bridgeName)}`)).toBe("0\n0\n0");
  });

  test("a pod's interface believes none either, and the node's end of it has no IPv6 at all", async () => {
    const fresh = await sandbox.addPod();
    const { interfaces } = await dataPath.attach({
      ...requestFor("fresh", fresh, 11),
      ipam: ipamOf(["10.77.0.11/24"]),
    });
    expect(await sandbox.pod(fresh, `cat ${settingsOf("eth0")}`)).toBe("0\n0\n0");
    expect(await sandbox.node(`ip -6 addr show dev ${interfaces[1]?.name}`)).toBe("");
  });

  test("where /proc/sys is read-only, pods come and go all the same", async () => {
    const readOnly = "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys";
    const netns = await sandbox.addPod();
    const fails = `! echo 0 > /proc/sys/net/ipv6/conf/${bridgeName}/accept_ra`;
    const command = `${readOnly} && ${fails} && exec ${process.execPath} ${program} ${netns} /pipette-mark`;
    const done = await execa("unshare", ["-m", "sh", "-c", command], { reject: false });
    expect(`${done.exitCode} ${done.stderr.replace(/.*Read-only file system\n?/, "")}`).toBe("0 ");
  });
});

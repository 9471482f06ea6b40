import { mkdtempSync, rmSync } from "node:fs";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables, variables } from "../conformance/plugin.ts";
import { OpenVswitch } from "../overlay/open-vswitch.ts";
import { eventually } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";
import { executablesInside, SystemdNode } from "./systemd-node.ts";

const unit = "pipette-agent.service";
const conf = { cniVersion: "1.0.0", name: "pods", type: "pipette" };
const subnets = ["10.94.0.0/24", "fd94::/64"];

/** `pipette install` on a machine that systemd runs: the unit that is delivered, and nothing of it left out. */
async function install(node: SystemdNode, ...options: readonly string[]): Promise<void> {
  // There is no journal.
  await node.run(`mkdir -p /etc/systemd/system/${unit}.d`);
  await node.run(`tee /etc/systemd/system/${unit}.d/log.conf`, { input: "[Service]\nStandardError=append:/run/log\n" });
  await node.run([`${executablesInside}/pipette`, "install", ...options].join(" "));
}

/** One verb, as a runtime calls the installed plugin. */
async function cni(node: SystemdNode, verb: "ADD" | "DEL", pod: string): Promise<readonly string[]> {
  const env = variables(verb, { CNI_CONTAINERID: pod, CNI_NETNS: `/run/netns/${pod}` }) as Record<string, string>;
  const answer = await node.run("/opt/cni/bin/pipette", { env, input: JSON.stringify(conf) });
  const { ips = [] }: { ips?: { address: string }[] } = answer === "" ? {} : JSON.parse(answer);
  return ips.map(({ address }) => address.replace(/\/.*/, ""));
}

/** A pod whose namespace the service has not seen at its start. */
async function addPod(node: SystemdNode, name: string): Promise<readonly string[]> {
  await node.run(`ip netns add ${name}`);
  return cni(node, "ADD", name);
}

async function endPod(node: SystemdNode, name: string): Promise<void> {
  await cni(node, "DEL", name);
  await node.run(`ip netns del ${name}`);
}

async function pingsFrom(node: SystemdNode, pod: string, targets: readonly string[]): Promise<void> {
  for (const target of targets)
    expect(await node.runIn(pod, `ping -n -q -c 1 -W 2 ${target}`), target).toContain(" 0% packet loss");
}

const mainPid = async (node: SystemdNode): Promise<string> =>
  node.run(`systemctl show --property=MainPID --value ${unit}`);

describeWith("the agent as a service of systemd, with the unit's rights", ["root", "systemd", "nft"], () => {
  let node: SystemdNode;
  beforeAll(async () => {
    compileExecutables();
    node = await SystemdNode.start(executables);
    await install(node, ...subnets.map((subnet) => `--subnet=${subnet}`));
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
  });

  test("has less than half of the exposure that systemd counts for a service", async () => {
    const file = new URL("../../conf/pipette-agent.service", import.meta.url).pathname;
    const { stdout } = await execa("systemd-analyze", ["security", "--offline=yes", "--threshold=40", file]);
    expect(stdout).toMatch(/Overall exposure level for pipette-agent\.service: [0-3]\.\d/);
  });

  test("is told to be ready by the agent itself, and runs as the unit says", async () => {
    expect(await node.run(`systemctl is-active ${unit}`)).toBe("active");
    // By its name, as every document has it.
    expect(await node.run("pipette status")).toMatch(/^pipette agent /);
    const status = await node.run(`cat /proc/${await mainPid(node)}/status`);
    const of = (name: string): string => new RegExp(`^${name}:\\s*(\\S+)`, "m").exec(status)?.[1] ?? "";
    // DAC_OVERRIDE, NET_ADMIN, NET_RAW, SYS_PTRACE, SYS_ADMIN: include/uapi/linux/capability.h
    const mask = [1n, 12n, 13n, 19n, 21n].reduce((sum, bit) => sum | (1n << bit), 0n);
    expect([BigInt(`0x${of("CapBnd")}`), of("NoNewPrivs"), of("Seccomp")]).toEqual([mask, "1", "2"]);
  });

  test("cannot write elsewhere, nor make what it is not to make", async () => {
    const pid = await mainPid(node);
    const mounts = await node.run(`cat /proc/${pid}/mounts`);
    for (const path of ["/", "/etc"]) expect(mounts).toMatch(new RegExp(`^\\S+ ${path} \\S+ ro,`, "m"));
    for (const path of ["/etc/cni/net.d", "/var/lib/pipette", "/run/pipette"])
      expect(mounts).toMatch(new RegExp(`^\\S+ ${path} \\S+ rw,`, "m"));
  });

  test("gives pods their network whose namespaces come after it, and takes it back", async () => {
    const [first, second] = [await addPod(node, "first"), await addPod(node, "second")];
    expect([first.length, second.length]).toEqual([2, 2]);
    await pingsFrom(node, "first", [...second, "10.94.0.1", "fd94::1"]);
    for (const family of ["ipv4/ip_forward", "ipv6/conf/all/forwarding"])
      expect(await node.run(`cat /proc/sys/net/${family}`), family).toBe("1");
    expect(await node.run("nft list table inet pipette-pipette0")).toContain("masquerade");
    // No plugin for host ports is there.
    expect(await node.run("/opt/cni/bin/pipette doctor")).toMatch(/: 0 errors, 0 warnings, 1 note$/m);
    await endPod(node, "second");
    expect(await node.run("/opt/cni/bin/pipette status")).toMatch(/^pods +2 +0 +\d+ +1\n[\s\S]*no problems/m);
  });

  test("is started again when it is killed, finishes what was left and has its pods", async () => {
    const pid = await mainPid(node);
    await node.run(`kill -KILL ${pid}`);
    await cni(node, "DEL", "first");
    await eventually(async () => {
      const now = await mainPid(node);
      return now !== "0" && now !== pid && (await node.run(`systemctl is-active ${unit}`).catch(() => "")) === "active";
    }, "the unit to be active again");
    expect(await node.run("/opt/cni/bin/pipette status")).toMatch(/^pods +0 +0 +\d+ +0\n/m);
    await node.run("ip netns del first");
    expect(await addPod(node, "third")).toHaveLength(2);
    await pingsFrom(node, "third", ["10.94.0.1", "fd94::1"]);
    await endPod(node, "third");
  });

  test("ends in order, and was refused nothing by its filter of system calls", async () => {
    await node.run(`systemctl stop ${unit}`);
    const shown = await node.run(`systemctl show --property=Result,ExecMainStatus ${unit}`);
    expect(shown.split("\n").sort()).toEqual(["ExecMainStatus=0", "Result=success"]);
    expect(await node.run("cat /run/log")).not.toMatch(/EPERM|EROFS|EACCES|"level":"error"/);
  });
});

describeWith("the agent of Open vSwitch as a service of systemd", ["root", "systemd", "nft", "openvswitch"], () => {
  test("makes the bridge and gives pods their network with the unit's rights", async () => {
    compileExecutables();
    await using node = await SystemdNode.start(executables);
    // Neither in /tmp nor in /run: the unit has the one for itself, the node the other.
    const parent = mkdtempSync("/var/cache/pipette-unit-");
    using _ = { [Symbol.dispose]: () => rmSync(parent, { recursive: true, force: true }) };
    using namespace = NetworkNamespace.at(`/proc/${node.firstPid}/ns/net`);
    await using vswitch = await OpenVswitch.start("both", { parent, within: namespace.within });
    await node.run("ip addr add 192.0.2.1/24 dev lo");
    const ovs = { database: `unix:${vswitch.socket}`, datapath: "netdev", nodeAddresses: ["192.0.2.1"] };
    const config = { dataPath: "ovs", networks: [{ name: "pods", subnets, bridge: "br-int" }], ovs };
    await node.run("mkdir /etc/pipette");
    await node.run("tee /etc/pipette/agent.yaml", { input: JSON.stringify(config) });
    await install(node);
    const addresses = await addPod(node, "one");
    await addPod(node, "other");
    await pingsFrom(node, "other", [...addresses, "10.94.0.1", "fd94::1"]);
    expect(await node.run("/opt/cni/bin/pipette status")).toContain("no problems");
    await endPod(node, "one");
    await node.run(`systemctl stop ${unit}`);
    expect(await node.run("cat /run/log")).not.toMatch(/EPERM|EROFS|EACCES|"level":"error"/);
  });
});

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { debOf } from "../../build/release/deb.ts";
import { shippedFiles } from "../../build/release/files.ts";
import { compileExecutables, executables, variables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { executablesInside, type SystemdNode } from "../systemd/systemd-node.ts";
import { startDebNode, unit, unitIs } from "./deb-node.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const conf = { cniVersion: "1.0.0", name: "pods", type: "pipette" };
const agentYaml = { networks: [{ name: "pods", subnets: ["10.95.0.0/24"], bridge: "pipette0" }] };

describeWith("the package for Debian", ["root", "systemd", "nft", "musl"], () => {
  const directory = mkdtempSync(join(tmpdir(), "pipette-deb-"));
  let node: SystemdNode;
  const dpkg = (...args: readonly string[]): Promise<string> => node.run(["dpkg", ...args].join(" "));
  const deb = join(executablesInside, "pipette.deb");
  const cni = (verb: "ADD" | "DEL"): Promise<string> => {
    const env = variables(verb, { CNI_CONTAINERID: "pod", CNI_NETNS: "/run/netns/pod" }) as Record<string, string>;
    return node.run("/opt/cni/bin/pipette", { env, input: JSON.stringify(conf) });
  };

  beforeAll(async () => {
    compileExecutables();
    const executable = readFileSync(join(executables, "pipette"));
    const shipped = shippedFiles(root);
    const version = { full: "0.1.0", tag: "0.1.0", time: 0, commit: undefined };
    const made = debOf({ root, architecture: "amd64", executable, version, texts: new Map(), shipped });
    writeFileSync(join(directory, "pipette.deb"), made);
    copyFileSync(join(executables, "forward"), join(directory, "forward"));
    node = await startDebNode(directory);
  });
  afterAll(async () => {
    await node?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  test("starts nothing when it is installed, and has the command on the PATH", async () => {
    await dpkg("--install", deb);
    expect([await unitIs(node, "is-active"), await unitIs(node, "is-enabled")]).toEqual(["inactive", "disabled"]);
    expect(await node.run("pipette version")).toContain("CNI plugin and node agent");
    expect(await node.run("dpkg --verify pipette")).toBe("");
    // dpkg puts them in place in this order.
    const { stdout } = await execa("dpkg-deb", ["--contents", join(directory, "pipette.deb")]);
    const placeOf = (path: string): number => stdout.split("\n").findIndex((line) => line.endsWith(` .${path}`));
    expect(placeOf("/usr/libexec/pipette/pipette")).toBeGreaterThan(0);
    expect(placeOf("/opt/cni/bin/pipette")).toBeGreaterThan(placeOf("/usr/libexec/pipette/pipette"));
    await node.run(`cmp /opt/cni/bin/pipette ${executablesInside}/forward`);
  });

  test("serves once it is asked to, and goes on with its pods when another is installed over it", async () => {
    await node.run("mkdir /etc/pipette");
    await node.run("tee /etc/pipette/agent.yaml", { input: JSON.stringify(agentYaml) });
    await node.run(`systemctl enable --now ${unit}`);
    await node.run("ip netns add pod");
    expect(await cni("ADD")).toContain("10.95.0.2/24");
    const pid = (): Promise<string> => node.run(`systemctl show --property=MainPID --value ${unit}`);
    const before = await pid();
    await dpkg("--install", deb);
    expect(await unitIs(node, "is-active")).toBe("active");
    expect(await pid()).not.toBe(before);
    expect(await node.runIn("pod", "ping -c 1 -W 2 10.95.0.1")).toContain(" 0% packet loss");
  });

  test("is not removed from under pods", async () => {
    await expect(dpkg("--remove", "pipette")).rejects.toThrow(/1 pod of this node has an address, wanted it drained/);
    expect(await unitIs(node, "is-active")).toBe("active");
    expect(await node.run("pipette status")).toContain("no problems");
  });

  test("takes the service, the runtime's configuration and the executables along, and the rest when it is purged", async () => {
    await cni("DEL");
    await dpkg("--remove", "pipette");
    expect(await unitIs(node, "is-active")).toBe("inactive");
    expect(await node.run("find /etc/cni /opt /usr/libexec -name *pipette*")).toBe("");
    expect(await node.run("ls /etc/pipette /var/lib/pipette")).toMatch(/agent\.yaml[\s\S]*leases\.db/);
    await dpkg("--purge", "pipette");
    await expect(node.run("ls /etc/pipette")).rejects.toThrow("No such file");
    await expect(node.run("ls /var/lib/pipette")).rejects.toThrow("No such file");
  });
});

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { imagesOf } from "../../build/release/images.ts";
import { licenceTexts } from "../../build/release/licences.ts";
import { version } from "../../shared/version.ts";
import { ConfinedNode } from "../clients/confined-node.ts";
import { Podman } from "../clients/podman.ts";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const networks = [{ name: "pods", subnets: ["10.93.0.0/24", "fd93::/64"], bridge: "pipette0", masquerade: true }];

describeWith(
  "the image for Linux",
  ["root", "containerd", "podman", "cni-plugins", "gcc", "busybox", "nft", "skopeo"],
  () => {
    const directory = mkdtempSync(join(tmpdir(), "pipette-image-"));
    const archive = join(directory, "image.tar");
    let node: ConfinedNode;

    beforeAll(async () => {
      compileExecutables();
      const executable = readFileSync(join(executables, "pipette"));
      const made = imagesOf({
        executables: { "linux-x64": executable },
        version: { full: version, tag: version, time: 0, commit: undefined },
        texts: await licenceTexts(root),
        cache: directory,
        repository: "pipette",
        skip: () => undefined,
      });
      writeFileSync(archive, made.archives[0]?.bytes ?? "");
      node = await ConfinedNode.start({ archives: { [`pipette:${version}`]: archive } });
    });
    afterAll(async () => {
      await node?.[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    });

    test("is what skopeo takes for one, with the digests that it says", async () => {
      const { stdout } = await execa("skopeo", ["inspect", `oci-archive:${archive}`]);
      expect(JSON.parse(stdout)).toMatchObject({
        Os: "linux",
        Architecture: "amd64",
        Created: "1970-01-01T00:00:00Z",
        Labels: { "org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0" },
      });
      await execa("skopeo", ["copy", "--quiet", `oci-archive:${archive}`, `dir:${join(directory, "copied")}`]);
    });

    test("installs and runs an agent under containerd, as the DaemonSet has it, that has all that it needs", async () => {
      expect(await node.install()).toEqual([expect.stringMatching(/^0: (.*\n)+.* done$/m)]);
      expect(await node.startAgent({ networks, janitorIntervalMs: 500 })).toBe("ready");
      await eventually(async () => (await node.cri.networkProblem()) === undefined, "containerd to find its network");
      const told = (command: string): Promise<string> => node.cri.exec(node.agent, command);
      expect(await told("pipette version")).toContain(`pipette ${version}: `);
      const [one, other] = [await node.cri.runPod("one"), await node.cri.runPod("other")];
      const inside = await node.cri.startContainer(one, "sleep 1000");
      const { addresses } = await node.cri.podStatus(other);
      expect(addresses).toHaveLength(2);
      for (const target of [...addresses, "192.0.2.1"])
        expect(await node.cri.exec(inside, `ping -c 1 -W 2 ${target}`)).toContain(" 0% packet loss");
      // By the image's nft with the image's libraries.
      expect(await node.node.run("nft list table inet pipette-pipette0")).toContain("masquerade");
      expect(await told("nft --version")).toMatch(/^nftables v/);
      expect(await told("pipette status")).toContain("no problems");
      expect(await told("pipette doctor")).toContain("all agree");
      await expect(told("/bin/sh")).rejects.toThrow(/no such file/);
      await node.endAgent();
    });

    test("is loaded and run by podman", async () => {
      const places = { pluginDir: "/usr/lib/cni", confDir: directory };
      const podman = await Podman.start(node.node, places, "none");
      expect(await podman.run("load", "--input", archive)).toContain(`pipette:${version}`);
      const options = ["--rm", "--network", "none", "--read-only", "--cgroup-parent", node.node.cgroup];
      expect(await podman.run("run", ...options, `pipette:${version}`, "version")).toContain(`pipette ${version}: `);
    });
  },
);

import { linkSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compileExecutables, executables, variables } from "../conformance/plugin.ts";
import { writeAnotherBuild } from "../install/another-build.ts";
import { describeWith } from "../support/requires.ts";
import { earlierExecutables } from "../upgrade/earlier-release.ts";
import { executablesInside, SystemdNode } from "./systemd-node.ts";

const conf = JSON.stringify({ cniVersion: "1.0.0", name: "pods", type: "pipette" });
const [plugin, whole] = ["/opt/cni/bin/pipette", "/usr/libexec/pipette/pipette"];
const add = variables("ADD", { CNI_CONTAINERID: "pod", CNI_NETNS: "/run/netns/pod" }) as Record<string, string>;

/**
 * As a runtime that never stops: whatever is wrong with an answer is a line of /run/wrong. The earlier release's plugin
 * does not wait for an agent that is replaced: with its word for that, a runtime comes again.
 */
const runtime = `while [ ! -e /run/stop ]; do
  for name in pipette pipette-ipam; do
    said=$(CNI_COMMAND=VERSION /opt/cni/bin/$name </dev/null 2>&1)
    case "$?$said" in '0{"cniVersion"'*'"supportedVersions"'*']}') ;; *) echo "VERSION of $name: $said" >>/run/wrong;; esac
  done
  said=$(${plugin} </run/conf 2>/dev/null)
  case "$?$said" in
    '0{'*'"10.94.0.2/24"'*'}') ;;
    '1{'*'"code":11'*'}') [ -e /run/has-earlier ] || echo "ADD: $said" >>/run/wrong;;
    *) echo "ADD: $said" >>/run/wrong;;
  esac
  echo >>/run/calls
done
`;

describeWith(
  "a node that is called while it is upgraded, and on its way back",
  ["root", "systemd", "nft", "musl", "strace", "earlier-release"],
  () => {
    /** On the disk of the executables, which are linked and not copied. */
    let directory: string;
    let node: SystemdNode;
    let calling: Promise<string>;
    const install = (release: string, ...options: readonly string[]) =>
      node.run([`${executablesInside}/${release}/pipette`, "install", "--progress", ...options].join(" "));
    const calls = async (): Promise<number> => (await node.run("cat /run/calls")).length;
    const calledAgain = async (): Promise<void> => {
      const wanted = (await calls()) + 2;
      for (let tries = 0; tries < 600 && (await calls()) < wanted; tries++) await Bun.sleep(50);
    };
    /** Programs that one ADD has become. */
    const becomes = async (): Promise<readonly string[]> => {
      const env = { ...add, PATH: "/usr/bin:/bin" };
      await node.run(`strace -f -qq -e trace=execve -o /run/trace ${plugin}`, { env, input: conf });
      const started = (await node.run("cat /run/trace")).matchAll(/execve\("([^"]+)", \[(.*?)\]/g);
      return [...started].map(([, path, list = ""]) => `${path} ${/"--forwarded", "(\w+)"/.exec(list)?.[1] ?? ""}`);
    };

    beforeAll(async () => {
      compileExecutables();
      directory = mkdtempSync(join(executables, ".in-front-"));
      for (const name of ["earlier", "now", "next"]) mkdirSync(join(directory, name));
      linkSync(join(await earlierExecutables("linux"), "pipette"), join(directory, "earlier/pipette"));
      linkSync(join(executables, "pipette"), join(directory, "now/pipette"));
      writeAnotherBuild(join(directory, "next/pipette"));
      node = await SystemdNode.start(directory);
      await node.run("mkdir -p /etc/systemd/system/pipette-agent.service.d");
      const log = "[Service]\nStandardError=append:/run/log\n";
      await node.run("tee /etc/systemd/system/pipette-agent.service.d/log.conf", { input: log });
      await install("earlier", "--subnet=10.94.0.0/24");
      await node.run("ip netns add pod");
      await node.run(plugin, { env: add, input: conf });
      await node.run("tee /run/conf", { input: conf });
      await node.run("touch /run/calls /run/has-earlier");
      await node.run("tee /run/runtime", { input: runtime });
      calling = node.run("sh /run/runtime", { env: { ...add, PATH: "/usr/bin:/bin" } });
    });
    afterAll(async () => {
      await node?.run("touch /run/stop");
      await calling?.catch(() => undefined);
      await node?.[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    });

    test("the release of now goes behind its small program, and the agent runs from there", async () => {
      await calledAgain();
      await install("now");
      expect(await node.run("systemctl show --property=ExecStart --value pipette-agent")).toContain(`path=${whole} `);
      expect(await node.run("pipette version")).toContain("CNI plugin and node agent");
      expect(await node.run("readlink /usr/local/bin/pipette")).toBe(plugin);
      expect(await becomes()).toEqual([`${plugin} `]);
      await calledAgain();
      await node.run("rm /run/has-earlier");
    });

    test("in the middle of an upgrade an agent of another build passes each call, which the whole program carries out", async () => {
      await install("next", "--executables-only");
      expect(await becomes()).toEqual([`${plugin} `, `${whole} unasked`]);
      await calledAgain();
      // As after a run that was killed in between: only the process is not that of the installed file any more.
      expect(await install("next")).toMatch(/^restart +pipette-agent/m);
      expect(await install("next")).toContain("nothing had to be changed");
      expect(await becomes()).toEqual([`${plugin} `]);
      await calledAgain();
    });

    test("on the way back the earlier release has its own under both names, and forwards again", async () => {
      await install("now");
      await calledAgain();
      await node.run("touch /run/has-earlier");
      await install("earlier");
      expect(await becomes()).toEqual([`${plugin} `]);
      expect(await node.run("systemctl show --property=ExecStart --value pipette-agent")).toContain(`path=${plugin} `);
      await calledAgain();
      await install("now");
      await calledAgain();
      expect(await becomes()).toEqual([`${plugin} `]);
    });

    test("no call of all these failed", async () => {
      await node.run("touch /run/stop");
      await calling;
      expect(await node.run("cat /run/wrong").catch(() => "")).toBe("");
      expect(await calls()).toBeGreaterThan(10);
    });

    test("a removal takes all of it away", async () => {
      await node.run(plugin, { env: { ...add, CNI_COMMAND: "DEL" }, input: conf });
      await node.run("pipette uninstall --purge");
      expect(await node.run("find /opt /usr/libexec /usr/local/bin -name *pipette*")).toBe("");
    });
  },
);

import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { installCommandWith } from "../../agent/commands/install/install-command.ts";
import { openSystemd } from "../../agent/commands/install/systemd.linux.ts";
import { unitName } from "../../agent/platform/systemd.ts";
import { compileExecutables, executables, scratch } from "../conformance/plugin.ts";
import { AgentHome, type AgentProcess, bridgeName, resultOf } from "../support/agent-process.ts";
import { callPlugin } from "../support/cni-call.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { runAt } from "../support/terminal-run.ts";

/** Another release of the same program: a byte of the ELF header that nobody reads is another. */
function anotherRelease(path: string): void {
  const bytes = readFileSync(join(executables, "pipette"));
  bytes[15] = 0x7f;
  writeFileSync(path, bytes, { mode: 0o755 });
}

/** Pings without a pause until stopped. */
function pinging(netns: string, address: string) {
  const child = spawn("nsenter", [`--net=${netns}`, "ping", "-n", "-i", "0.02", address], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()));
  return {
    async stop(): Promise<{ sent: number; received: number }> {
      child.kill("SIGINT");
      await ended;
      const [, sent = "", received = ""] = /(\d+) packets transmitted, (\d+) received/.exec(said) ?? [];
      return { sent: Number(sent), received: Number(received) };
    },
  };
}

describeWith("the upgrade of a node with running pods", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;

  beforeAll(async () => {
    compileExecutables();
    sandbox = await NetworkSandbox.enter("pt-up-");
  });
  afterEach(async () => {
    await home?.[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("peers 15: pods keep talking while the executable and the agent are replaced, and their DEL works", async () => {
    using place = scratch();
    const bin = place.path;
    home = new AgentHome({}, bin);
    const unitDir = join(home.directory, "system");
    const earlier = join(home.directory, "earlier");
    anotherRelease(earlier);

    let agent: AgentProcess | undefined;
    let restarts = 0;
    // What `systemctl restart` does with a unit of Type=notify: stop, start, wait until it serves.
    const systemctl = async ([verb]: readonly string[]) => {
      if (verb === "restart") {
        restarts++;
        await agent?.end();
        agent = await home.start();
      }
      return { status: 0, stdout: verb === "is-active" && agent !== undefined ? "active" : "", stderr: "" };
    };
    const keeper = async () => openSystemd({ unitDir, booted: async () => true, systemctl });
    const install = async (from: string) => {
      const args = ["--from", from, "--bin-dir", bin, "--config", home.configFile];
      const { status, stderr, stdout } = await runAt("pipette install", installCommandWith(keeper), args);
      expect([status, stderr]).toEqual([0, ""]);
      return stdout;
    };

    await install(earlier);
    expect(readFileSync(join(unitDir, unitName), "utf8")).toContain(`ExecStart=${bin}/pipette agent --config`);
    const conflist = JSON.parse(readFileSync(home.conflist, "utf8"));
    const call = (verb: "ADD" | "DEL" | "CHECK", id: string, netns: string, prevResult?: unknown) =>
      callPlugin({
        executable: join(bin, "pipette"),
        env: { CNI_COMMAND: verb, CNI_CONTAINERID: id, CNI_NETNS: netns, CNI_IFNAME: "eth0", CNI_PATH: bin },
        conf: { cniVersion: conflist.cniVersion, name: conflist.name, ...conflist.plugins[0], prevResult },
      });
    const [a, b] = [await sandbox.addPod("a"), await sandbox.addPod("b")];
    const addedA = JSON.parse((await call("ADD", "a", a)).stdout);
    const addedB = JSON.parse((await call("ADD", "b", b)).stdout);
    const pings = pinging(a, addedB.ips[0].address.replace("/16", ""));
    await Bun.sleep(200);
    const before = agent?.pid;

    const said = await install(join(executables, "pipette"));
    expect(said).toMatch(/^replace .*\/pipette .*\n^replace .*\/pipette-ipam /m);
    expect([restarts, agent?.pid === before]).toEqual([2, false]);
    await Bun.sleep(200);
    const { sent, received } = await pings.stop();
    expect(sent).toBeGreaterThan(20);
    expect(received).toBe(sent);

    expect(readFileSync(`/proc/${agent?.pid}/exe`)[15]).toBe(0);
    await call("CHECK", "a", a, addedA);
    expect(resultOf(await home.cmd("cmdAdd", "b", { netns: b })).ips).toEqual(addedB.ips);
    for (const [id, netns] of [
      ["a", a],
      ["b", b],
    ] as const)
      await call("DEL", id, netns);
    expect(await home.containers()).toEqual([]);
    expect((await home.status()).problems).toEqual([]);
  });
});

import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Step } from "../../agent/commands/install/plan.ts";
import type { ServiceInstaller } from "../../agent/commands/install/service.ts";
import { uninstallCommandWith } from "../../agent/commands/install/uninstall-command.ts";
import { AgentHome, type AgentProcess, bridgeName, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { runAt } from "../support/terminal-run.ts";

/** The node's services are played: none may be touched here. */
const keeperOf = (steps: readonly Step[]): (() => Promise<ServiceInstaller>) => {
  const keeper = { planInstall: async () => [], planRemoval: async () => steps };
  return async () => keeper;
};

describeWith("pipette uninstall beside an agent that somebody has started by hand", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let agent: AgentProcess;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-un-");
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    const network = { name: networkName, subnets: ["10.78.0.0/16"], bridge: bridgeName, masquerade: true };
    home = new AgentHome({ networks: [network] });
    agent = await home.start();
  });
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });

  const uninstall = (steps: readonly Step[], ...more: readonly string[]) => {
    const bin = join(home.directory, "bin");
    mkdirSync(bin, { recursive: true });
    const args = ["--bin-dir", bin, "--config", home.configFile, ...more];
    return runAt("pipette uninstall", uninstallCommandWith(keeperOf(steps)), args);
  };
  const stop = (run: () => Promise<undefined>): Step => ({ action: "stop", target: "pipette-agent", detail: "", run });

  test("is refused before anything is touched", async () => {
    for (const more of [[], ["--dry-run"], ["--purge"]]) {
      const { status, stdout, stderr } = await uninstall([], ...more);
      expect([status, stdout]).toEqual([1, ""]);
      expect(stderr).toContain(`no service of ours has started runs as process ${agent.pid}, wanted it stopped`);
    }
    expect([existsSync(home.conflist), existsSync(home.configFile)]).toEqual([true, true]);
  });

  test("goes on once the service that ran it has ended, and only then", async () => {
    const still = await uninstall([stop(async () => undefined)]);
    expect([still.status, still.stderr]).toEqual([1, expect.stringContaining(`runs as process ${agent.pid}`)]);
    const stopped = await uninstall([
      stop(async () => {
        await agent.end();
        return undefined;
      }),
    ]);
    expect([stopped.status, stopped.stderr]).toEqual([0, ""]);
  });

  test("a service that is no business of it leaves the agent, with a word about that", async () => {
    const { status, stderr } = await uninstall([], "--no-service");
    expect([status, stderr]).toEqual([0, expect.stringContaining(`an agent still runs as process ${agent.pid}`)]);
  });

  test("names the bridge and the packet rules, and their commands take them away", async () => {
    await agent.end();
    const { status, stdout } = await uninstall([], "--json");
    const { left } = JSON.parse(stdout) as { left: { what: string; command: string }[] };
    const host = left.filter(({ what }) => !what.includes("/"));
    expect([status, host]).toEqual([
      0,
      [
        { what: `bridge "${bridgeName}"`, command: `ip link del ${bridgeName}` },
        ...["inet", "bridge"].map((family) => ({
          what: `nftables table "${family} pipette-${bridgeName}"`,
          command: `nft delete table ${family} pipette-${bridgeName}`,
        })),
      ],
    ]);
    for (const { command } of host) await sandbox.node(command);
    const again = JSON.parse((await uninstall([], "--json")).stdout) as { left: { what: string }[] };
    expect(again.left.filter(({ what }) => !what.includes("/"))).toEqual([]);
  });

  test("names a pod's interface that nobody has taken down", async () => {
    using pod = NetworkNamespace.create();
    resultOf(await home.cmd("cmdAdd", "c1", { netns: pod.path }));
    await agent.end();
    const of = async (): Promise<readonly { what: string; command: string }[]> =>
      JSON.parse((await uninstall([], "--with-pods", "--json")).stdout).left;
    const [found] = await of();
    expect(found?.what).toMatch(/^interface ".*" of a pod$/);
    await sandbox.node(found?.command ?? "");
    expect((await of()).some(({ what }) => what.startsWith("interface"))).toBe(false);
  });

  test("of a lock that a killed agent has left nothing is said", async () => {
    await agent.end("SIGKILL");
    writeFileSync(join(home.dataDir, "agent.lock"), "");
    expect((await uninstall([])).status).toBe(0);
  });
});

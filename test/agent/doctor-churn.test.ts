import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { examine } from "../../agent/commands/doctor/examine.ts";
import { keyOf } from "../../agent/commands/doctor/finding.ts";
import { repair } from "../../agent/commands/doctor/repair.ts";
import type { AgentConfig } from "../../agent/config/agent-config.ts";
import { parseAgentConfig } from "../../agent/config/parse-agent-config.ts";
import { AgentHome, bridgeName, networkName, resultOf } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const workers = 4;
const lastsMs = 4_000;
const longestMs = 60_000;

describeWith("pipette doctor beside pods that come and go", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let config: AgentConfig;
  const paths: string[] = [];

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dc-");
    home = new AgentHome();
    await home.start();
    const parsed = parseAgentConfig(await readFile(home.configFile, "utf8"), home.configFile);
    if (parsed.t === "wrong") throw new Error(parsed.problems.join("\n"));
    config = parsed.config;
    for (let i = 0; i < workers; i++) paths.push(await sandbox.addPod(`w${i}`));
  });
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await sandbox?.node(`ip link del ${bridgeName}`).catch(() => undefined);
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("raises no false alarm, and a repair in mid-churn takes no pod's network", async () => {
    const began = performance.now();
    let [calls, rounds] = [0, 0];
    // On a busy machine until there was something to see.
    const goesOn = (): boolean => performance.now() < began + (rounds > 1 && calls > 20 ? lastsMs : longestMs);
    const churn = async (i: number): Promise<void> => {
      const [name, netns] = [`w${i}`, paths[i] ?? ""];
      while (goesOn()) {
        resultOf(await home.cmd("cmdAdd", name, { netns }));
        // The pod's own view, whatever the doctor did meanwhile.
        expect(await sandbox.ping(netns, "10.78.0.1"), name).toBe(true);
        await home.cmd("cmdDel", name, { netns });
        calls += 2;
      }
      resultOf(await home.cmd("cmdAdd", name, { netns }));
    };
    const working = Promise.all(paths.map((_, i) => churn(i)));
    const alarms: string[] = [];
    while (goesOn()) {
      const { findings } = await examine(config, { pauseMs: 300 });
      alarms.push(...findings.filter(({ severity }) => severity !== "note").map(keyOf));
      rounds++;
      // As if it had found each of them: the agent looks again, holding the owner's mutex, and leaves a pod that is in order.
      const wanted = paths.map((_, i) => ({
        severity: "error" as const,
        code: "asked",
        what: `w${i}`,
        why: "",
        todo: "",
        repair: { t: "attachment", owner: { network: networkName, sandboxId: `w${i}`, ifname: "eth0" } } as const,
        evidence: "",
      }));
      expect((await repair(config, wanted)).flatMap(({ error }) => error ?? [])).toEqual([]);
    }
    await working;
    expect(alarms).toEqual([]);
    expect(rounds).toBeGreaterThan(1);
    expect(calls).toBeGreaterThan(20);
    const end = await examine(config);
    expect(end).toMatchObject({ findings: [], leases: 2 * workers, interfaces: workers });
    for (const path of paths) expect(await sandbox.ping(path, "10.78.0.1")).toBe(true);
  }, 180_000);
});

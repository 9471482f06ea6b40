import { afterAll, beforeAll, expect, test } from "vitest";
import { Allocator } from "../../ipam/allocator.ts";
import { ipamCommands } from "../../ipam/cli/commands.ts";
import { runAt } from "../fakes/terminal-run.ts";
import { AgentHome, bridgeName, eventually, networkName } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

interface Held {
  readonly containerId: string;
  readonly until?: string;
}

describeWith("who had an address on a node", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dh-");
    home = new AgentHome();
  });
  afterAll(async () => {
    await home?.[Symbol.asyncDispose]();
    await sandbox?.node(`ip link del ${bridgeName}`).catch(() => undefined);
    await sandbox?.[Symbol.asyncDispose]();
  });

  const history = async (...args: readonly string[]): Promise<readonly Held[]> => {
    const words = ["history", ...args, "--json", "--data-dir", home.dataDir];
    return JSON.parse((await runAt("pipette ipam", ipamCommands, words)).stdout);
  };
  const told = async (...args: readonly string[]): Promise<readonly string[]> =>
    (await history(...args)).map(({ containerId, until }) => `${containerId} ${until === undefined ? "has" : "had"}`);

  test("is known after a kill, also of a DEL that no agent heard of", async () => {
    const agent = await home.start();
    for (const name of ["a", "b", "c"])
      expect((await home.cmd("cmdAdd", name, { netns: await sandbox.addPod(name) })).error).toBeUndefined();
    await home.cmd("cmdDel", "a");
    const left = async (): Promise<number> => (await history()).filter(({ until }) => until !== undefined).length;
    // Two addresses each, one in each family.
    expect(await left()).toBe(2);
    await eventually(async () => (await Bun.file(`${home.dataDir}/history.jsonl`).exists()) === true, "the file");
    await agent.end("SIGKILL");
    {
      // As the plugin does that finds no agent.
      using store = await Allocator.open(home.dataDir);
      store.release({ network: networkName, sandboxId: "b", ifname: "eth0" }, "releasing");
    }
    const [gone] = (await history()).filter(({ containerId }) => containerId === "b");
    await home.start();
    const written = async (): Promise<boolean> =>
      (await Bun.file(`${home.dataDir}/history.jsonl`).text()).includes('"s":"b"');
    await eventually(written, "the period to be written");
    expect((await history()).find(({ containerId }) => containerId === "b")).toEqual(gone);
    expect(new Set(await told())).toEqual(new Set(["a had", "b had", "c has"]));
    expect((await Bun.file(`${home.dataDir}/history.jsonl`).text()).trim().split("\n")).toHaveLength(4);
  });
});

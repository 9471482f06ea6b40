import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { AgentHome, type AgentProcess, bridgeName, networkName } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

describeWith("pipette agent --cleanup with kernel bridges", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let agent: AgentProcess;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-dc-");
  });
  beforeEach(async () => {
    const network = { name: networkName, subnets: ["10.78.0.0/16", "fd78::/64"], bridge: bridgeName, masquerade: true };
    home = new AgentHome({ networks: [network] });
    agent = await home.start();
  });
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    for (const name of [bridgeName, "theirs"]) await sandbox.node(`ip link del ${name}`).catch(() => undefined);
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());

  async function cleanUp() {
    const run = home.spawn({}, ["--cleanup", "--json"]);
    const status = await run.ended();
    const { changes = [] } = run.stdout === "" ? {} : JSON.parse(run.stdout);
    return { status, stderr: run.stderr, did: changes.map(({ did }: { did: string }) => did) };
  }

  test("takes everything back, once, and none of it while an agent runs", async () => {
    const pod = await sandbox.addPod("one");
    await home.cmd("cmdAdd", "one", { netns: pod });
    expect(await cleanUp()).toMatchObject({
      status: 1,
      did: [],
      stderr: expect.stringContaining(`process ${agent.pid}`),
    });
    expect(await sandbox.node("ip -o link")).toContain(`master ${bridgeName}`);
    await agent.end();
    expect(await cleanUp()).toMatchObject({ status: 0, did: ["was gone", ...Array(5).fill("undone")] });
    expect(await sandbox.node("ip -o link")).not.toMatch(/ptd0|pipette/);
    expect(await sandbox.node("nft list tables")).not.toContain("pipette");
    expect(await cleanUp()).toMatchObject({ status: 0, did: Array(5).fill("was gone") });
    await sandbox.removePod(pod);
  });

  test.each([
    [
      "a port of others",
      "ip link add theirs type veth peer name others; ip link set theirs master BRIDGE",
      'it has the port "theirs"',
    ],
    ["an address of others", "ip addr add 10.78.0.9/16 dev BRIDGE", "it has the address 10.78.0.9/16"],
  ])("leaves a bridge with %s, says so, and takes the rest back", async (_, commands, is) => {
    for (const command of commands.split("; ")) await sandbox.node(command.replace("BRIDGE", bridgeName));
    await agent.end();
    expect(await cleanUp()).toEqual({
      status: 1,
      stderr: expect.stringContaining(is),
      did: ["was gone", "was gone", "failed", "undone", "undone"],
    });
    expect(await sandbox.node(`ip -o link show ${bridgeName}`)).toContain(bridgeName);
  });
});

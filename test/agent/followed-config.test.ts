import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { nodeService } from "../../shared/proto/services.ts";
import { AgentHome, type AgentProcess, bridgeName, networkName } from "../support/agent-process.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

describeWith("an agent that follows its configuration, as in a pod with a ConfigMap", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let home: AgentHome;
  let agent: AgentProcess;
  let text: string;
  let versions = 0;

  /** As the kubelet does: a new directory, and the link to it turned. */
  function publish(content: string): void {
    const volume = join(home.directory, "volume");
    const version = `..version-${++versions}`;
    mkdirSync(join(volume, version), { recursive: true });
    writeFileSync(join(volume, version, "agent.yaml"), content);
    symlinkSync(version, join(volume, "..data_tmp"));
    renameSync(join(volume, "..data_tmp"), join(volume, "..data"));
  }

  const refusal = (words: string) =>
    agent.logged(
      ({ message }) => String(message).startsWith("Cannot take the configuration") && String(message).includes(words),
    );

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-df-");
  });
  beforeEach(async () => {
    home = new AgentHome();
    text = readFileSync(home.configFile, "utf8");
    publish(text);
    home.configFile = join(home.directory, "volume", "agent.yaml");
    symlinkSync("..data/agent.yaml", home.configFile);
    agent = await home.start({}, ["--follow-config"]);
  });
  afterEach(async () => {
    await home[Symbol.asyncDispose]();
    await sandbox.node(`ip link del ${bridgeName}`).catch(() => undefined);
  });
  afterAll(async () => {
    await sandbox?.[Symbol.asyncDispose]();
  });

  test("ends well when that asks for something else, so that whoever started it starts it anew", async () => {
    publish(text.replace("{", '{ "logLevel": "debug",'));
    expect(await agent.ended()).toBe(0);
    expect(agent.lines).toContainEqual(expect.objectContaining({ signal: `"${home.configFile}" has changed` }));
    agent = await home.start({}, ["--follow-config"]);
    await home.status();
    await agent.logged(({ level }) => level === "debug");
  });

  test("goes on with what it has where no agent could start with the new text, and says why", async () => {
    publish("networks: {");
    await refusal("agent.yaml:1:");
    publish(text.replace("{", '{ "dataPath": "hns",'));
    await refusal('without "hns"');
    expect((await home.status()).pid).toBe(agent.pid);
    // Put right again, and then changed.
    publish(text);
    publish(text.replace("{", '{ "cooldownMs": 1000,'));
    expect(await agent.ended()).toBe(0);
  });

  /** What a person is told, and whether all is well: for a person, and for a probe. */
  function told(): { readonly configuration: readonly string[]; readonly statuses: readonly (number | null)[] } {
    const [program = "", ...args] = home.command;
    const status = (...more: readonly string[]) =>
      spawnSync(program, [...args, "status", "--socket", home.socket, ...more], { encoding: "utf8" });
    const forPeople = status();
    const configuration = forPeople.stdout.split("\n").filter((line) => line.startsWith("configuration: "));
    return { configuration, statuses: [forPeople.status, status("--readiness").status] };
  }

  test("status names a text that is refused, since when and why, until it is taken; probes are well", async () => {
    expect(told()).toEqual({ configuration: [], statuses: [0, 0] });
    publish("networks: {");
    await refusal("agent.yaml:1:");
    const { configuration, statuses } = told();
    expect(configuration).toEqual([
      expect.stringMatching(
        /^configuration: ".*agent\.yaml" is refused since 20\d\d-.*Z, and the configuration from before stays in force: .*agent\.yaml:1:/,
      ),
    ]);
    expect(statuses).toEqual([1, 0]);
    // A runtime hears nothing of it.
    expect((await home.call(nodeService.status, { network: networkName })).configuration).toEqual([]);
    publish(text);
    await expect.poll(told, { timeout: 20_000 }).toEqual({ configuration: [], statuses: [0, 0] });
  });

  test("so it does where the runtime's file is missing, another, or not the first one", async () => {
    const written = readFileSync(home.conflist, "utf8");
    rmSync(home.conflist);
    expect(told().configuration).toEqual([
      expect.stringContaining('10-pipette.conflist" is missing or cannot be read'),
    ]);
    writeFileSync(home.conflist, `${written} `);
    expect(told().configuration).toEqual([
      expect.stringContaining('10-pipette.conflist" is not as the agent wrote it'),
    ]);
    writeFileSync(home.conflist, written);
    const other = join(dirname(home.conflist), "05-other.conflist");
    writeFileSync(other, "{}");
    expect(told()).toEqual({
      configuration: [expect.stringContaining('05-other.conflist" comes before "10-pipette.conflist"')],
      statuses: [1, 0],
    });
    rmSync(other);
    expect(told()).toEqual({ configuration: [], statuses: [0, 0] });
  });

  test("goes on where the new text says the same in other words", async () => {
    publish(`# A comment.\n${text.replace("{", '{ "dataPath": "bridge",')}`);
    // What comes after it is seen after it.
    publish("networks: {");
    await refusal("agent.yaml:1:");
    expect((await home.status()).pid).toBe(agent.pid);
  });
});

import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { AgentHome, type AgentProcess, bridgeName } from "../support/agent-process.ts";
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

  test("goes on where the new text says the same in other words", async () => {
    publish(`# A comment.\n${text.replace("{", '{ "dataPath": "bridge",')}`);
    // What comes after it is seen after it.
    publish("networks: {");
    await refusal("agent.yaml:1:");
    expect((await home.status()).pid).toBe(agent.pid);
  });
});

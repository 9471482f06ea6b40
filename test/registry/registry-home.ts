import { readFileSync, writeFileSync } from "node:fs";
import { execa } from "execa";
import { AgentHome, bridgeName, networkName } from "../support/agent-process.ts";

/** The home of a node's agent that has its subnet from a registry. */
export function registryHome(
  registry: (home: AgentHome) => object,
  options: { readonly name?: string; readonly executables?: string } = {},
): AgentHome {
  const home = new AgentHome({}, options.executables);
  const config = JSON.parse(readFileSync(home.configFile, "utf8"));
  config.networks = [{ name: networkName, bridge: bridgeName, masquerade: false }];
  config.nodes = { name: options.name ?? "here", addresses: ["192.0.2.1"], registry: registry(home) };
  writeFileSync(home.configFile, JSON.stringify(config));
  return home;
}

/** `pipette WORDS`, with the home's configuration where the command has one. */
export async function pipette(
  home: AgentHome,
  ...words: readonly string[]
): Promise<{ readonly status: number | undefined; readonly stdout: string; readonly stderr: string }> {
  const [file = "", ...args] = home.command;
  const config = words[0] === "status" ? [] : ["--config", home.configFile];
  const run = await execa(file, [...args, ...words, ...config], { reject: false, timeout: 30_000 });
  return { status: run.exitCode, stdout: run.stdout, stderr: run.stderr };
}

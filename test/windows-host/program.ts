import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { cleanUpHost, type HostSettings, prepareHost, setUpHost } from "../../agent/windows-host/mod.ts";
import { openHostRunner } from "../../agent/windows-host/powershell.windows.ts";
import { openSystem } from "../../shared/server/system.ts";
import { NodeInMemory } from "./node-in-memory.ts";
import { deleteHnsNetwork, type NodeState } from "./node-state.ts";
import { exampleSettings } from "./set-up-fixture.ts";

/**
 * Compiled for Windows, and run in Wine under two names. As `powershell.exe` it does what scripts say to the node whose
 * state is a file; what stands in `fault.txt` it does instead. Under any other name it is an agent that does nothing but
 * set that node up: `prepare`, `setUp` and `cleanUp`, with the names of the settings in a file;
 * or `hold` what a running agent holds.
 */
const directory = "C:\\node";
const stateFile = `${directory}\\state.json`;

const readJson = (path: string): unknown => JSON.parse(readFileSync(path, "utf8"));
const textOf = (name: string): string => {
  const path = `${directory}\\${name}`;
  return existsSync(path) ? readFileSync(path, "utf8").trim() : "";
};

async function powershell(args: readonly string[]): Promise<void> {
  const fault = textOf("fault.txt");
  if (fault === "silent") return;
  const script = Buffer.from(args.at(-1) ?? "", "base64").toString("utf16le");
  const node = new NodeInMemory(readJson(stateFile) as NodeState);
  const { stdout } = await node.execute(script);
  writeFileSync(stateFile, JSON.stringify(node.state));
  writeFileSync(1, fault === "half" ? stdout.slice(0, -20) : stdout);
  if (fault === "status") process.exitCode = 7;
  if (fault !== "hang") return;
  await Bun.sleep(2500);
  writeFileSync(`${directory}\\survived.txt`, "");
}

async function agent(what: string): Promise<void> {
  const run = openHostRunner(Number(textOf("deadline.txt") || 30_000));
  const names = readJson(`${directory}\\settings.json`) as Partial<HostSettings>;
  const settings = { ...exampleSettings(directory), ...names };
  const answer = {
    prepare: () => prepareHost(settings, run),
    setUp: () => setUpHost(settings, run),
    cleanUp: () =>
      cleanUpHost(settings.dataDir, run, async (name) => {
        const state = readJson(stateFile) as NodeState;
        deleteHnsNetwork(state, name, true);
        writeFileSync(stateFile, JSON.stringify(state));
        return [];
      }),
    // As a running agent does.
    hold: async () => {
      const lock = (await openSystem()).tryLock(`${directory}\\agent.lock`);
      writeFileSync(1, `${lock.t}\n`);
      await Bun.sleep(60_000);
    },
  }[what];
  try {
    writeFileSync(1, `${JSON.stringify(await answer?.())}\n`);
  } catch (caught) {
    writeFileSync(2, String(caught));
    process.exitCode = 1;
  }
}

const [, , ...args] = process.argv;
if (basename(process.execPath).toLowerCase() === "powershell.exe") await powershell(args);
else await agent(args[0] ?? "");

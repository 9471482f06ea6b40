import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { executables } from "../../conformance/plugin.ts";
import { AgentProcess } from "../../support/agent-process.ts";
import { startCommand } from "../../support/cni-call.ts";
import { isInFront, socketsOf } from "../../support/in-front.ts";
import { callInProcess } from "../in-process.ts";
import { type Call, dataDirHere, type Ended } from "./call.ts";

/** One of the two allocators, with a data directory of its own. */
export interface Side extends Disposable {
  run(call: Call): Promise<Ended>;
  /** Undoes what the last call did to where the next address is looked for. */
  turnBack(): void;
}

function environment({ verb, containerId, ifname, args }: Call): Record<string, string> {
  return {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: containerId,
    CNI_IFNAME: ifname,
    CNI_ARGS: args,
    CNI_NETNS: "/run/netns/pt-diff-none",
    CNI_PATH: "/nonexistent",
  };
}

const resolvConf = `# a comment
nameserver 192.0.2.1
nameserver not-checked
domain first.example
search a.example b.example
search c.example
options ndots:2
; another
domain last.example
`;

const removeAll = (path: string): void => rmSync(path, { recursive: true, force: true });

/** With a file beside the leases that a configuration may name as its `resolvConf`. */
function newDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "pt-diff-"));
  fill(path);
  return path;
}

function fill(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  writeFileSync(`${path}/resolv.conf`, resolvConf);
}

/** Released addresses are free at once here, as in host-local, so that both give the same ones. */
const withoutCooling = (stdin: string): string => stdin.replace(`"dataDir":`, `"cooldownMs":0,"dataDir":`);

const stdinFor = (call: Call, dataDir: string): string => withoutCooling(call.stdin).replaceAll(dataDirHere, dataDir);

/** Pipette's plugin in this process: every call opens the store anew, as its process would. */
export function pipetteInProcess(): Side {
  const dataDir = newDirectory();
  return {
    async run(call) {
      const { status, out } = await callInProcess(environment(call), stdinFor(call, dataDir));
      return { status, stdout: out === undefined ? "" : JSON.stringify(out) };
    },
    turnBack: () => undefined,
    [Symbol.dispose]: () => removeAll(dataDir),
  };
}

async function execute(executable: string, call: Call, stdin: string): Promise<Ended> {
  const { status, stdout } = await startCommand([executable], environment(call), stdin).ended;
  return { status: status ?? -1, stdout };
}

/** Pipette's plugin as it is installed; with the small program in front, before a service that has the store. */
export async function pipetteProcess(executable: string): Promise<Side> {
  const parent = mkdtempSync(join(tmpdir(), "pt-diff-"));
  const dataDir = join(parent, "data");
  fill(dataDir);
  const service = isInFront ? await serviceOf(dataDir) : undefined;
  return {
    run: (call) => execute(executable, call, stdinFor(call, dataDir)),
    turnBack: () => undefined,
    [Symbol.dispose]: () => {
      service?.signal("SIGKILL");
      removeAll(parent);
    },
  };
}

async function serviceOf(dataDir: string): Promise<AgentProcess> {
  const socket = socketsOf(dataDir).ipamSocket;
  const command = [join(executables, "pipette"), "ipam", "serve", "--socket", socket, "--data-dir", dataDir];
  const service = new AgentProcess(command);
  await service.logged((line) => line["message"] === "ready");
  return service;
}

/** Debian's. */
export function hostLocal(executable: string): Side {
  const dataDir = newDirectory();
  const directory = `${dataDir}/net`;
  let before: ReadonlyMap<string, string> = new Map();
  return {
    run(call) {
      before = cursorFiles(directory);
      // The newest version that it knows; the results of 1.1.0 are the same.
      const stdin = call.stdin.replaceAll('"cniVersion":"1.1.0"', '"cniVersion":"1.0.0"');
      return execute(executable, call, stdin.replaceAll(dataDirHere, dataDir));
    },
    turnBack() {
      for (const name of cursorFiles(directory).keys()) if (!before.has(name)) rmSync(`${directory}/${name}`);
      for (const [name, text] of before) writeFileSync(`${directory}/${name}`, text);
    },
    [Symbol.dispose]: () => removeAll(dataDir),
  };
}

function cursorFiles(directory: string): ReadonlyMap<string, string> {
  try {
    const names = readdirSync(directory).filter((name) => name.startsWith("last_reserved_ip."));
    return new Map(names.map((name) => [name, readFileSync(`${directory}/${name}`, "utf8")]));
  } catch {
    return new Map(); // Nothing was allocated yet.
  }
}

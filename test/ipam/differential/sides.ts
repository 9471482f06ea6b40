import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
  writeFileSync(`${path}/resolv.conf`, resolvConf);
  return path;
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
  const child = Bun.spawn([executable], {
    env: environment(call),
    stdin: new TextEncoder().encode(stdin),
    stdout: "pipe",
    stderr: "ignore",
  });
  const [stdout, status] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  return { status, stdout };
}

/** Pipette's plugin as it is installed. */
export function pipetteProcess(executable: string): Side {
  const dataDir = newDirectory();
  return {
    run: (call) => execute(executable, call, stdinFor(call, dataDir)),
    turnBack: () => undefined,
    [Symbol.dispose]: () => removeAll(dataDir),
  };
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

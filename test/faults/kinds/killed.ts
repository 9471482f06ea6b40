import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { frontDirectory } from "../../support/in-front.ts";
import { BridgeNode } from "../node/bridge-node.ts";
import type { Fault } from "../workload/fault.ts";

/** The agent's start is a second at most; killed later it has been killed while it served. */
const startMs = 400;
const maxKills = 4;

/** What it makes at its start, and what it finds there of its own, is met half done. */
const killedWhileItStarts: Fault = {
  name: "the agent is killed again and again while it starts",
  on: ["bridge", "ovs", "hns"],
  endsAgent: true,
  refusals: { ADD: [11], CHECK: [11], STATUS: [50] },
  strike: async (node, _pods, random) => {
    await node.endAgent("SIGKILL");
    const kills = 1 + random(maxKills);
    for (let i = 0; i < kills; i++) {
      // Never ready: that it says so is what this is about.
      const starting = node.startAgent().catch(() => undefined);
      await Bun.sleep(random(startMs));
      await node.endAgent("SIGKILL");
      await starting;
    }
    const what = `the agent, ${kills} times after the first`;
    return { what, lost: [], [Symbol.asyncDispose]: () => node.startAgent() };
  },
};

/** As a runtime does whose own deadline has passed, or the kernel that is out of memory. */
const pluginsKilled: Fault = {
  name: "plugins are killed at any moment",
  on: ["bridge", "ovs"],
  killsPlugins: true,
  joinsOthers: true,
  refusals: {},
  strike: async (node, _pods, random) => {
    if (!(node instanceof BridgeNode)) throw new Error(`Cannot find plugins: the node is ${node.kind}, wanted bridge`);
    let goesOn = true;
    const killing = (async () => {
      while (goesOn) {
        // Mostly within the milliseconds that a plugin lives.
        await Bun.sleep(5 + random(60));
        const running = pluginsOf(node);
        const pid = running[random(Math.max(1, running.length))];
        if (pid !== undefined) kill(pid);
      }
    })();
    const end = async (): Promise<void> => {
      goesOn = false;
      await killing;
    };
    return { what: "every plugin that comes", lost: [], [Symbol.asyncDispose]: end };
  },
};

/**
 * Processes of the executable in the node's namespaces that have no arguments, as agent, doctor and commands have; with
 * the small program in front also its own, and those it has become.
 */
function pluginsOf(node: BridgeNode): readonly number[] {
  const place = namespaceOf(node.machine.firstPid);
  const file = join(node.executables, "pipette");
  const isOurs = (exe = ""): boolean => exe === file || exe.startsWith(`${frontDirectory}/`);
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0 && isOurs(exeOf(pid)) && namespaceOf(pid) === place && isPlugin(pid));
}

function isPlugin(pid: number): boolean {
  try {
    const [, argument] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
    return argument === "" || argument === "--forwarded";
  } catch {
    return false; // Has ended.
  }
}

const exeOf = (pid: number): string | undefined => linkOf(`/proc/${pid}/exe`);
const namespaceOf = (pid: number): string | undefined => linkOf(`/proc/${pid}/ns/net`);

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined; // Has ended.
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Was faster.
  }
}

export const killedFaults: readonly Fault[] = [killedWhileItStarts, pluginsKilled];

import { Watched } from "../steps.ts";
import type { Fault } from "../workload/fault.ts";
import { bridgeNode } from "./on-bridge.ts";

/** What cannot be kept is refused, with the path; nothing is done by halves. */
const unwritable = { ADD: [101], DEL: [101], CHECK: [101], GC: [101, 11] } as const;

const full: Fault = {
  name: "the disk is full",
  on: ["bridge", "ovs"],
  refusals: unwritable,
  strike: async (node) => {
    const { machine, home } = bridgeNode(node);
    const filler = `${home.dataDir}/filler`;
    const fill = `cat /dev/zero > ${filler} 2> /dev/null`;
    await machine.runWords(["sh", "-c", `mountpoint -q ${home.dataDir} && { ${fill}; true; }`]);
    const end = async (): Promise<void> => void (await machine.run(`rm ${filler}`));
    return { what: "that of the data directory", lost: [], [Symbol.asyncDispose]: end };
  },
};

/** By what the system answers the agent: files that are open keep a file system writable. */
const failing = (name: string, error: string): Fault => ({
  name,
  on: ["bridge", "ovs"],
  refusals: { ...unwritable, ADD: [101, 5], CHECK: [101, 5] },
  strike: async (node) => {
    const calls = "pwrite64,fsync,fdatasync,ftruncate,fallocate";
    const options = ["-e", `trace=${calls}`, "-e", `inject=${calls}:error=${error}`];
    const watched = await Watched.watch(bridgeNode(node).agent.pid, options);
    return { what: `the agent, with ${error}`, lost: [], [Symbol.asyncDispose]: () => watched[Symbol.asyncDispose]() };
  },
});

const slow: Fault = {
  name: "the disk is slow",
  on: ["bridge", "ovs"],
  // Whoever waits for the lock behind others waits long.
  refusals: { ADD: [11], DEL: [11], GC: [11], CHECK: [11], STATUS: [50] },
  strike: async (node) => {
    const calls = "pwrite64,fsync,fdatasync,ftruncate";
    const options = ["-e", `trace=${calls}`, "-e", `inject=${calls}:delay_enter=40000`];
    const watched = await Watched.watch(bridgeNode(node).agent.pid, options);
    return { what: "40 ms for each write", lost: [], [Symbol.asyncDispose]: () => watched[Symbol.asyncDispose]() };
  },
};

export const diskFaults: readonly Fault[] = [
  full,
  failing("the disk is read-only", "EROFS"),
  failing("the disk is broken", "EIO"),
  slow,
];

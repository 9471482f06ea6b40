import { writeFileSync } from "node:fs";
import { Allocator } from "../../ipam/allocator.ts";
import { ipamCommands } from "../../ipam/cli/commands.ts";
import type { Store } from "../../ipam/store/store.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { runAt, type TerminalRun } from "./terminal-run.ts";

/** For tests: a data directory with a network's configuration beside it, and `pipette ipam` on both. */
export interface IpamTerminal extends Disposable {
  readonly path: string;
  readonly dataDir: string;
  /** Path of the configuration, a `.conflist` with a plugin of another make in front. */
  readonly conf: string;
  /** `--data-dir` is added. */
  run(...args: string[]): Promise<TerminalRun>;
  runWith(around: Parameters<typeof runAt>[3], ...args: string[]): Promise<TerminalRun>;
  /** A command that must end with status 0; its `--json`. */
  json(...args: string[]): Promise<unknown>;
  /** `allocate`, for a pod `default/<container>`. */
  allocate(container: string, ...more: string[]): Promise<void>;
  /** What no command would do. */
  change(work: (store: Store) => void): Promise<void>;
}

export const usualIpam = {
  ranges: [[{ subnet: "10.1.0.0/24", exclude: ["10.1.0.64/28"] }], [{ subnet: "fd00:1::/64" }]],
};

export function ipamTerminal(ipam: object = usualIpam): IpamTerminal {
  const scratch = scratchDir();
  const dataDir = `${scratch.path}/data`;
  const conf = `${scratch.path}/blue.conflist`;
  const plugins = [{ type: "portmap" }, { type: "bridge", ipam: { type: "pipette-ipam", dataDir, ...ipam } }];
  writeFileSync(conf, JSON.stringify({ cniVersion: "1.0.0", name: "blue", plugins }));
  const runWith: IpamTerminal["runWith"] = (around, ...args) =>
    runAt("pipette ipam", ipamCommands, [...args, "--data-dir", dataDir], around);
  const run: IpamTerminal["run"] = (...args) => runWith({}, ...args);
  const json = async (...args: string[]): Promise<unknown> => {
    const { status, stdout, stderr } = await run(...args, "--json");
    if (status !== 0) throw new Error(`"${args.join(" ")}" ended with ${status}: ${stderr}`);
    return JSON.parse(stdout);
  };
  return {
    path: scratch.path,
    dataDir,
    conf,
    run,
    runWith,
    json,
    allocate: async (container, ...more) => {
      await json("allocate", "--conf", conf, "--container", container, "--pod", `default/${container}`, ...more);
    },
    change: async (work) => {
      using allocator = await Allocator.open(dataDir);
      allocator.transaction((store): void => work(store));
    },
    [Symbol.dispose]: () => scratch[Symbol.dispose](),
  };
}

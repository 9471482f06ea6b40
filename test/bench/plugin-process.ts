import type { Launch, Launched, Launcher } from "./launch/launcher.ts";

/** A CNI executable started the way a runtime starts it: once per verb, variables and stdin, until it has ended. */
export interface PluginProcess {
  readonly executable: string;
  readonly env: Readonly<Record<string, string>>;
  readonly conf: string;
}

/** @throws as `runLaunched` */
export const runTimed = (launcher: Launcher, { executable, env, conf }: PluginProcess): Launched =>
  runLaunched(launcher, { program: [executable], env, stdin: conf });

/** One process. @throws where it failed: a benchmark of failures would measure nothing */
export function runLaunched(launcher: Launcher, launch: Omit<Launch, "namespaces">): Launched {
  const [ended] = launcher.run(launch).each;
  if (ended?.status === 0) return ended;
  const what = `${launch.env["CNI_COMMAND"]} of "${launch.program.join(" ")}"`;
  throw new Error(`Cannot measure ${what}: status ${ended?.status}, it answered ${ended?.stdout}`);
}

export function verbEnv(verb: string, id: string, netns: string, path: string): Record<string, string> {
  return {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: id,
    CNI_NETNS: netns,
    CNI_IFNAME: "eth0",
    CNI_PATH: path,
    CNI_ARGS: "IgnoreUnknown=1",
    PATH: process.env["PATH"] ?? "/usr/sbin:/usr/bin:/sbin:/bin",
  };
}

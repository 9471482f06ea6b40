/**
 * The plugin: one CNI verb per process, from environment and stdin to one JSON object on stdout.
 *
 * It checks what it was given, has the agent take the addresses and wire the sandbox, and the delegated IPAM plugin
 * where the configuration names one. `main.ts` uses only this file of the room, which the executable holds in one piece
 * (`build/bundle.ts`); the agent, which runs forwarded calls, uses `hosted.ts`.
 */
import { runPlugin } from "../shared/cni/dispatch.ts";
import { runPluginProcess } from "../shared/cni/plugin-process.ts";
import { pluginContextOf } from "./plugin-context.ts";
import { verbsIn } from "./verbs.ts";

/**
 * @param args of the process: a runtime gives none
 * @returns the exit status
 */
export const runCniPlugin = (args: readonly string[]): Promise<number> =>
  runPluginProcess((io) => runPlugin(verbsIn(pluginContextOf(args)), io));

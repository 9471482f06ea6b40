/**
 * The plugin: one CNI verb per process, from environment and stdin to one JSON object on stdout.
 *
 * It checks what it was given, has the agent take the addresses and wire the sandbox, and the delegated IPAM plugin
 * where the configuration names one. Only `main.ts` uses this room, through this file. The executable holds all of it
 * in one piece (`build/bundle.ts`).
 */
import { runPlugin } from "../shared/cni/dispatch.ts";
import { runPluginProcess } from "../shared/cni/plugin-process.ts";
import { verbs } from "./verbs.ts";

/** @returns the exit status */
export const runCniPlugin = (): Promise<number> => runPluginProcess((io) => runPlugin(verbs, io));

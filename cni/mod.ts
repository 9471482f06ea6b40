/**
 * The plugin: one CNI verb per process, from environment and stdin to one JSON object on stdout.
 *
 * It checks what it was given, has the agent take the addresses and wire the sandbox, and the delegated IPAM plugin
 * where the configuration names one. Only `main.ts` uses this room, and of it what stands here. The executable holds all
 * of it in one piece (`build/bundle.ts`).
 */
import { encodeError, type PluginIo, runPlugin } from "../shared/cni/dispatch.ts";
import { latestVersion } from "../shared/cni/versions.ts";
import { CniError } from "../shared/errors.ts";
import { verbs } from "./verbs.ts";

export { processIo } from "./process-io.ts";

/** @returns the exit status; never throws */
export const runCniPlugin = (io: PluginIo): Promise<number> => runPlugin(verbs, io);

/** The CNI error for a fault that nobody expected. */
export const faultText = (caught: unknown): string => encodeError(CniError.from(caught), latestVersion);

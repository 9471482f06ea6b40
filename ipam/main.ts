/** The allocator as an IPAM plugin: what `main.ts` needs of this room, bundled into one piece (`build/bundle.ts`). */
import { runPluginProcess } from "../shared/cni/plugin-process.ts";
import { runIpamPlugin } from "./plugin.ts";

/** @returns the exit status */
export const runIpamProcess = (): Promise<number> => runPluginProcess((io) => runIpamPlugin(io));

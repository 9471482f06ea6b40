import { Kernel, present } from "./kernel.ts";

/**
 * What stands in the place of modules where a data path runs on a node in memory, beside `hostFiles`:
 * `vi.mock(import("…/netlink/mod.ts"), async (original) => (await import("…/mocks.ts")).netlinkInMemory(await original()));`
 */

/** Netlink whose kernel is the node of the test that runs. */
export const netlinkInMemory = (real: typeof import("../../../agent/protocols/netlink/mod.ts")) =>
  ({ ...real, Kernel }) as never;

/** Programs of which each is that node's `nft`. */
export const programsInMemory = (real: typeof import("../../../agent/platform/run-program.ts")) => ({
  ...real,
  runProgram: async (_file: string, _args: readonly string[], { input = "" }: { readonly input?: string }) =>
    present.node.nft(input),
});

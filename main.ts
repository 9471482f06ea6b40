import { faultText, processIo, runCniPlugin } from "./cni/mod.ts";

// One executable, several faces: CNI_COMMAND makes it a plugin, and then its name which one;
// at a terminal the arguments choose. What a face needs is imported when it is shown: the plugin
// starts for every verb, and everything imported up front is paid each time.

// A first regular expression would take a tenth of a millisecond.
const name = process.argv0.slice(Math.max(process.argv0.lastIndexOf("/"), process.argv0.lastIndexOf("\\")) + 1);
const isIpam = ["pipette-ipam", "pipette-ipam.exe"].includes(name.toLowerCase());

if (process.env["CNI_COMMAND"] === undefined) {
  const { runTerminal } = await import("./terminal.ts");
  process.exitCode = await runTerminal(isIpam, process.argv.slice(2));
} else {
  process.exit(await runFace());
}

/** Whatever goes wrong, also where nobody waits for it, is one CNI error on stdout and a failure. */
async function runFace(): Promise<number> {
  const io = processIo();
  const fail = async (caught: unknown): Promise<number> => {
    await io.writeResult(faultText(caught)).catch(() => undefined);
    return 1;
  };
  const lastResort = (caught: unknown): void => void fail(caught).then((status) => process.exit(status));
  process.on("uncaughtException", lastResort);
  process.on("unhandledRejection", lastResort);
  try {
    return await (isIpam ? (await import("./ipam/mod.ts")).runIpamPlugin(io) : runCniPlugin(io));
  } catch (caught) {
    return fail(caught);
  }
}

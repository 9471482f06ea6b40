// One executable, several faces: CNI_COMMAND makes it a plugin, and then its name which one;
// at a terminal the arguments choose. What a face needs is imported when it is shown: the plugin
// starts for every verb, and everything imported up front is paid each time.

// A first regular expression would take a tenth of a millisecond.
const name = process.argv0.slice(Math.max(process.argv0.lastIndexOf("/"), process.argv0.lastIndexOf("\\")) + 1);
const isIpam = ["pipette-ipam", "pipette-ipam.exe"].includes(name.toLowerCase());

if (process.env["CNI_COMMAND"] === undefined) {
  const { runTerminal } = await import("./cli.ts");
  process.exitCode = await runTerminal(isIpam, process.argv.slice(2));
} else if (isIpam) {
  process.exit(await (await import("./ipam/main.ts")).runIpamProcess());
} else {
  process.exit(await (await import("./cni/mod.ts")).runCniPlugin(process.argv.slice(2)));
}

// Makes it a module, which may wait at its top level.
export {};

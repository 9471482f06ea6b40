// One executable, several programs: with CNI_COMMAND set it is a plugin, and its file name says which; otherwise the
// arguments choose a command. Each imports its code when it is chosen, because the plugin starts anew for every verb
// and pays for every import.

// Without a regular expression: the first one of a process costs a tenth of a millisecond.
const name = process.argv0.slice(Math.max(process.argv0.lastIndexOf("/"), process.argv0.lastIndexOf("\\")) + 1);
const isIpam = ["pipette-ipam", "pipette-ipam.exe"].includes(name.toLowerCase());

if (process.env["CNI_COMMAND"] === undefined) {
  const { runTerminal } = await import("./cli.ts");
  process.exitCode = await runTerminal(name.toLowerCase().replace(".exe", ""), process.argv.slice(2));
} else if (isIpam) {
  process.exit(await (await import("./ipam/main.ts")).runIpamProcess());
} else {
  process.exit(await (await import("./cni/mod.ts")).runCniPlugin(process.argv.slice(2)));
}

// Makes this file a module, so that it may use `await` at its top level.
export {};

import { resolve } from "node:path";
import { paths } from "../../shared/os/paths.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { counted, formatJson, printable } from "../../shared/terminal/printable.ts";
import { Progress } from "../../shared/terminal/progress.ts";
import { exportHostLocal } from "../host-local/export.ts";
import { openAllocator } from "./open-store.ts";
import { confOption, dataDirOption, jsonOption, networkOption, progressOption } from "./options.ts";
import { oneNetwork, scopeOf, unknownNetwork } from "./scope.ts";

const action = "export leases";

export const exportCommand = defineCommand({
  action,
  about: `Writes a network's addresses in use, and which it gave last, as files of host-local, so that host-local can go on
from there. The database keeps its leases; from now on the directory counts, and the next use of the network here
takes it over again.`,
  options: {
    conf: confOption,
    network: { ...networkOption, help: "the network, where no --conf names it" },
    to: {
      value: "DIR",
      of: "directory",
      help: `host-local's directory of this network, such as ${paths.hostLocalDataDir}${paths.directorySeparator}NAME;\nmade where it is missing, else empty or the one that these leases came from`,
      required: true,
    },
    "windows-names": { help: 'names files as on Windows, with "_" for ":", for a directory that goes there' },
    progress: progressOption,
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: { 3: "there is no database, or no such network" },
  run: async ({ options }, io) => {
    const scope = await scopeOf(options, io);
    const wanted = oneNetwork(scope, action, io);
    if (wanted === undefined) return exitStatus.wrongArguments;
    const unknown = await unknownNetwork(scope, action, io);
    if (unknown !== undefined) return unknown;
    using allocator = await openAllocator(scope.dataDir, action, io);
    if (allocator === undefined) return exitStatus.notThere;
    using progress = new Progress(io, options.progress);
    const report = await exportHostLocal(allocator, {
      directory: resolve(options.to),
      network: wanted,
      ...(options["windows-names"] ? { windows: true } : {}),
      onProgress: ({ done, total }) => progress.at("files written", done, total),
    });
    const { directory, network, leases, written, removed, unreadable } = report;
    if (options.json) {
      io.stdout(
        formatJson({
          directory,
          network,
          leases,
          written,
          removed,
          unreadable: unreadable.map(({ file, reason }) => ({ file, reason })),
        }),
      );
      return exitStatus.done;
    }
    const lines = [
      `Wrote ${counted(leases, "address", "addresses")} of network "${network}" to "${directory}": ${counted(written, "file")} written, ${removed} removed`,
      ...unreadable.map(({ file, reason }) => `"${directory}/${file}" was left alone: ${reason}`),
    ];
    io.stdout(lines.map((line) => `${printable(line)}\n`).join(""));
    return exitStatus.done;
  },
});

import { resolve } from "node:path";
import { formatIp } from "../../shared/net/ip.ts";
import { paths } from "../../shared/os/paths.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import { Progress } from "../../shared/terminal/progress.ts";
import { Allocator } from "../allocator.ts";
import { type ImportReport, importHostLocal } from "../host-local/import.ts";
import { directoryAt, hostLocalDirectory } from "../host-local/places.ts";
import { describeImport } from "../host-local/report.ts";
import { leaseView } from "./lease-view.ts";
import { ipamConfigOf } from "./network-conf.ts";
import { confOption, dataDirOption, jsonOption, networkOption, progressOption } from "./options.ts";
import { oneNetwork, scopeOf } from "./scope.ts";

const action = "import leases";

export const importCommand = defineCommand({
  action,
  about: `Takes the leases of a host-local directory over, under host-local's own lock and in one transaction. The directory
stays as it is. An address that another sandbox holds here already is left to that one, and listed. The first ADD
of a network does the same by itself where its directory lies in the data directory; this is for doing it
beforehand, or from elsewhere.

With --conf the leases get their subnets and gateways at once, else with the next ADD of their container.`,
  options: {
    conf: confOption,
    network: { ...networkOption, help: "the network, where no --conf names it" },
    from: {
      value: "DIR",
      of: "directory",
      help: `host-local's directory of this network (default: NAME in the data directory, or in ${paths.hostLocalDataDir})`,
    },
    again: { help: "takes also what was taken over before and released here since" },
    progress: progressOption,
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: {
    0: "done, all of it",
    1: "failed, or something was left out; it is listed",
    3: "there is no such directory",
  },
  run: async ({ options }, io) => {
    const scope = await scopeOf(options, io);
    const { dataDir, conf } = scope;
    const network = oneNetwork(scope, action, io);
    if (network === undefined) return exitStatus.wrongArguments;
    const { from } = options;
    const directory =
      from === undefined ? await hostLocalDirectory(dataDir, network) : await directoryAt(resolve(from));
    if (directory === undefined) {
      const is =
        from === undefined
          ? `host-local has no directory for network "${network}" in "${dataDir}"`
          : `"${from}" is no directory`;
      io.stderr(`${printable(`Cannot ${action}: ${is}, wanted one; --from DIR names another`)}\n`);
      return exitStatus.notThere;
    }
    const config = conf === undefined ? undefined : await ipamConfigOf(conf);
    const report = await importWith(
      { directory, network, config, again: options.again },
      dataDir,
      new Progress(io, options.progress),
    );
    if (options.json) io.stdout(formatJson(reportView(report)));
    else
      io.stdout(
        describeImport(report, Number.POSITIVE_INFINITY)
          .map((line) => `${printable(line)}\n`)
          .join(""),
      );
    return report.clashes.length + report.unreadable.length === 0 ? exitStatus.done : exitStatus.failed;
  },
});

async function importWith(
  options: Parameters<typeof importHostLocal>[1],
  dataDir: string,
  progress: Progress,
): Promise<ImportReport> {
  using shown = progress;
  using allocator = await Allocator.open(dataDir);
  return await importHostLocal(allocator, {
    ...options,
    onProgress: ({ step, done, total }) => shown.at(step === "reading" ? "files read" : "leases kept", done, total),
  });
}

function reportView({ clashes, unreadable, ...report }: ImportReport) {
  return {
    ...report,
    clashes: clashes.map(({ ip, theirs, ours }) => ({
      address: formatIp(ip),
      containerId: theirs.containerId,
      ifname: theirs.ifname,
      heldBy: leaseView(ours),
    })),
    unreadable: unreadable.map(({ file, reason }) => ({ file, reason })),
  };
}

import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { counted, formatJson, printable } from "../../shared/terminal/printable.ts";
import { Progress } from "../../shared/terminal/progress.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { readBootId } from "../allocator-env.ts";
import { type CheckReport, checkDatabase } from "../check/check-store.ts";
import { type Finding, severities } from "../check/finding.ts";
import type { CheckContext } from "../check/lease-checks.ts";
import { intervalsOf } from "../config/intervals.ts";
import { dataDirOf } from "../config/ipam-config.ts";
import { unknownKeys, unknownKeysOfSettings, unknownKeyText } from "../config/unknown-keys.ts";
import { databaseIn } from "../data-directory.ts";
import { repairStore } from "../store/repair-store.ts";
import { ipamConfigOf, type NetworkConf } from "./network-conf.ts";
import {
  confOption,
  dataDirOption,
  jsonOption,
  progressOption,
  sayMissing,
  sayNothingGiven,
  scopeOf,
} from "./scope.ts";

const action = "check the database";

export const check = defineCommand({
  action,
  about: `Verifies what the allocator relies on: the file itself, that what is noted as taken is what the leases say, that
generations are distinct and counted, that owners, states and times make sense. Of each finding it says what is,
why it matters and what to do. With --conf also whether the leases lie in the configured ranges, and which keys of
the configuration are passed over, because nobody knows them; so it tells of a configuration before its first ADD.`,
  options: {
    conf: confOption,
    repair: { help: "puts right what follows from the leases: what is taken, and the generation to count on from" },
    progress: progressOption,
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: { 0: "in order, apart from notes", 1: "failed, or there are errors or warnings", 3: "there is no database" },
  run: async ({ options }, io) => {
    const { conf, dataDir } = await scopeOf(options, io);
    const context = { nowMs: Date.now(), bootId: readBootId(), ...(await rangesOf(conf)) };
    const keys = conf === undefined ? [] : await unknownKeyFindings(conf);
    const look = async (): Promise<Report | undefined> => {
      const seen = await lookAt(databaseIn(dataDir), context, new Progress(io, options.progress));
      return seen === undefined ? undefined : { ...seen, findings: [...seen.findings, ...keys].sort(bySeverity) };
    };
    let report = await look();
    if (report === undefined) {
      if (conf === undefined) {
        sayMissing(dataDir, action, io);
        return exitStatus.notThere;
      }
      // Before the first ADD there is no database, only the configuration.
      sayNothingGiven(dataDir, io);
      report = { database: databaseIn(dataDir), leases: 0, findings: keys };
    }
    const before = report.findings.filter(({ repairable }) => repairable === true).length;
    if (options.repair && before > 0) {
      await repairStore(databaseIn(dataDir));
      report = (await look()) ?? report;
    }
    const left = report.findings.filter(({ repairable }) => repairable === true).length;
    tell(report, options.repair ? before - left : 0, options.json, io);
    return report.findings.every(({ severity }) => severity === "note") ? exitStatus.done : exitStatus.failed;
  },
});

interface Report extends CheckReport {
  readonly database: string;
}

/** `undefined` where there is no file. */
async function lookAt(
  path: string,
  context: Omit<CheckContext, "generation">,
  progress: Progress,
): Promise<Report | undefined> {
  using shown = progress;
  const onProgress = (done: number, total: number): void => shown.at("leases checked", done, total);
  const report = await checkDatabase(path, { ...context, onProgress });
  return report === undefined ? undefined : { database: path, ...report };
}

/** Unknown keys of the configuration and of the network's settings file. */
async function unknownKeyFindings(conf: NetworkConf): Promise<readonly Finding[]> {
  const settings = await unknownKeysOfSettings(dataDirOf(conf.conf), conf.network);
  const found = [
    ...unknownKeys(conf.conf).map((key) => ({ key, where: "the network configuration" })),
    ...settings.keys.map((key) => ({ key, where: `"${settings.path}"` })),
  ];
  return found.map(({ key, where }) => ({
    // A key that resembles none of ours may be meant for another program; a near match is a typing mistake.
    severity: key.near === undefined ? "note" : "warning",
    code: "unknown-key",
    network: conf.network,
    what: `${unknownKeyText(key)}, in ${where}`,
    why: "What it was to say does not hold: an exclusion that is none gives addresses out that others have",
    todo: key.near === undefined ? "take it out, or mend its name" : `write "${key.near}"`,
  }));
}

const bySeverity = (a: Finding, b: Finding): number => severities.indexOf(a.severity) - severities.indexOf(b.severity);

async function rangesOf(conf: NetworkConf | undefined): Promise<Pick<CheckContext, "ranges">> {
  if (conf === undefined) return {};
  const { rangeSets, reserved } = await ipamConfigOf(conf);
  const windows = intervalsOf(rangeSets.flat().map(({ start, end }) => ({ first: start, last: end })));
  return { ranges: { network: conf.network, windows, reserved } };
}

function tell({ database, leases, findings }: Report, repaired: number, json: boolean, io: TerminalIo): void {
  if (json) {
    io.stdout(formatJson({ database, leases, repaired, findings }));
    return;
  }
  const text = findings.map(({ severity, what, why, todo }) =>
    [`${severity}: ${what}`, `  why:  ${why}`, `  do:   ${todo}`].map((line) => `${printable(line)}\n`).join(""),
  );
  const count = (wanted: Finding["severity"]): string =>
    counted(findings.filter(({ severity }) => severity === wanted).length, wanted);
  const put = repaired === 0 ? "" : `${repaired} put right. `;
  const sum = findings.length === 0 ? "in order" : severities.map(count).join(", ");
  io.stdout(
    `${text.join("\n")}${text.length === 0 ? "" : "\n"}${put}${printable(database)}: ${counted(leases, "lease")}, ${sum}\n`,
  );
}

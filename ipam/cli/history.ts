import { podTitle } from "../../shared/cni/pod-name.ts";
import { formatIp, parseIp } from "../../shared/net/ip.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import { formatAge, formatTable } from "../../shared/terminal/table.ts";
import { knownPeriods, type Period, type PeriodQuery } from "../history/mod.ts";
import { shortId, timeText } from "./lease-view.ts";
import { confOption, dataDirOption, jsonOption, namesOf, networkOption, openSnapshot, scopeOf } from "./scope.ts";

const action = "show who had an address";

export const history = defineCommand({
  action,
  about: `Shows who had an address, and from when until when: the present holder first, then those before. Without WHAT all
that is known of this node. The agent writes it down when an address is given back, some tens of thousands of times,
and the oldest are forgotten; an ADD that failed is not among them.`,
  operands: [
    {
      name: "WHAT",
      of: namesOf("holders"),
      help: "an address, NAMESPACE/NAME of a pod, or NAMESPACE/ for all pods of a namespace",
      optional: true,
    },
  ],
  options: { conf: confOption, network: networkOption, json: jsonOption, "data-dir": dataDirOption },
  exits: { 0: "done", 2: "wrong arguments", 3: "nothing is known of it, or there is no database" },
  run: async ({ options, operands: [what] }, io) => {
    const query = queryOf(what);
    if (query === undefined) {
      const is = `"${what}" is neither an address nor NAMESPACE/NAME`;
      io.stderr(`${printable(`Cannot ${action}: ${is}, wanted one of both`)}\n`);
      return exitStatus.wrongArguments;
    }
    const { dataDir, network } = await scopeOf(options, io);
    using snapshot = await openSnapshot(dataDir, action, io);
    if (snapshot === undefined) return exitStatus.notThere;
    const only = { ...query, ...(network === undefined ? {} : { network }) };
    const { periods, sinceMs } = knownPeriods(dataDir, snapshot.leases(network), only);
    if (options.json) io.stdout(formatJson(periods.map(periodView)));
    else if (periods.length > 0) io.stdout(periodTable(periods, Date.now()));
    if (periods.length > 0) return exitStatus.done;
    const since = sinceMs === undefined ? "nothing was given back yet" : `the oldest is of ${timeText(sinceMs)}`;
    io.stderr(`${printable(`Nobody is known to have had ${what ?? "any address"}; ${since}`)}\n`);
    return what === undefined ? exitStatus.done : exitStatus.notThere;
  },
});

/** @returns `undefined` for what is none */
function queryOf(what: string | undefined): PeriodQuery | undefined {
  if (what === undefined) return {};
  const ip = parseIp(what);
  if (ip !== undefined) return { ip };
  return what.includes("/") ? { pod: what } : undefined;
}

/** As `--json` has it, with the words of `pipette get history`. */
const periodView = ({ owner, pod, ip, generation, fromMs, untilMs }: Period) => ({
  network: owner.network,
  address: formatIp(ip),
  containerId: owner.sandboxId,
  ifname: owner.ifname,
  ...(pod === undefined ? {} : { podNamespace: pod.namespace, podName: pod.name, podUid: pod.uid }),
  generation,
  from: timeText(fromMs),
  ...(untilMs === undefined ? {} : { until: timeText(untilMs) }),
});

function periodTable(periods: readonly Period[], nowMs: number): string {
  const header = ["ADDRESS", "POD", "FROM", "UNTIL", "FOR", "NETWORK", "SANDBOX", "INTERFACE"];
  const rows = periods.map(({ owner, pod, ip, fromMs, untilMs }) => [
    formatIp(ip),
    pod === undefined ? "-" : podTitle(pod),
    timeText(fromMs),
    untilMs === undefined ? "now" : timeText(untilMs),
    formatAge(Math.max(0, (untilMs ?? nowMs) - fromMs)),
    owner.network,
    shortId(owner.sandboxId),
    owner.ifname,
  ]);
  return formatTable([header, ...rows]);
}

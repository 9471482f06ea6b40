import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import { type Lease, leaseStates } from "../lease.ts";
import { leaseTable, leaseView, podText } from "./lease-view.ts";
import { absoluteDir, openSnapshot } from "./open-store.ts";
import { dataDirOption, jsonOption, networkOption } from "./options.ts";

const action = "list leases";

export const list = defineCommand({
  action,
  about: `Shows every lease: address, state, network, sandbox, interface, pod, and how long it has been in that state.
Several filters narrow it down together.`,
  options: {
    network: networkOption,
    state: { value: "STATE", of: leaseStates, help: "only those in this state" },
    pod: { value: "NAMESPACE/NAME", help: "only this pod's; NAMESPACE/ for all pods of a namespace" },
    sandbox: { value: "ID", help: "only this sandbox's, or those whose id begins so" },
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: { 0: "done, also when no lease fits", 3: "there is no database" },
  run: async ({ options }, io) => {
    using snapshot = await openSnapshot(absoluteDir(options["data-dir"]), action, io);
    if (snapshot === undefined) return exitStatus.notThere;
    const fits = filter(options);
    const leases = snapshot.leases(options.network).filter(fits).toArray();
    if (options.json) io.stdout(formatJson(leases.map(leaseView)));
    else if (leases.length === 0) io.stdout(`No leases${forWhat(options)}\n`);
    else io.stdout(leaseTable(leases, Date.now()));
    return exitStatus.done;
  },
});

interface Filters {
  readonly network: string | undefined;
  readonly state: string | undefined;
  readonly pod: string | undefined;
  readonly sandbox: string | undefined;
}

const filter =
  ({ state, pod, sandbox }: Filters) =>
  (lease: Lease): boolean =>
    (state === undefined || lease.state === state) &&
    (pod === undefined || isPod(podText(lease), pod)) &&
    (sandbox === undefined || lease.owner.sandboxId.startsWith(sandbox));

const isPod = (text: string | undefined, wanted: string): boolean =>
  text !== undefined && (wanted.endsWith("/") ? text.startsWith(wanted) : text === wanted);

function forWhat({ network, state, pod, sandbox }: Filters): string {
  const told = [
    network === undefined ? "" : ` in network "${network}"`,
    state === undefined ? "" : ` that are ${state}`,
    pod === undefined ? "" : ` of pod "${pod}"`,
    sandbox === undefined ? "" : ` of sandbox "${sandbox}"`,
  ];
  return printable(told.join(""));
}

import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import { type Lease, leaseStates } from "../lease.ts";
import { leaseTable, leaseView, podText } from "./lease-view.ts";
import {
  confOption,
  dataDirOption,
  jsonOption,
  namesOf,
  networkOption,
  openSnapshot,
  scopeOf,
  unknownNetwork,
} from "./scope.ts";

const action = "list leases";

export const list = defineCommand({
  action,
  about: `Shows every lease: address, state, network, sandbox, interface, pod, and how long it has been in that state.
Several filters narrow it down together.`,
  options: {
    conf: confOption,
    network: networkOption,
    state: { value: "STATE", of: leaseStates, help: "only those in this state" },
    pod: {
      value: "NAMESPACE/NAME",
      of: namesOf("pods"),
      help: "only this pod's; NAMESPACE/ for all pods of a namespace",
    },
    sandbox: { value: "ID", of: namesOf("sandboxes"), help: "only this sandbox's, or those whose id begins so" },
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: { 0: "done, also when no lease fits", 3: "there is no database, or no such network" },
  run: async ({ options }, io) => {
    const scope = await scopeOf(options, io);
    const unknown = await unknownNetwork(scope, action, io);
    if (unknown !== undefined) {
      if (options.json) io.stdout(formatJson([]));
      return unknown;
    }
    using snapshot = await openSnapshot(scope.dataDir, action, io);
    if (snapshot === undefined) return exitStatus.notThere;
    const { network } = scope;
    const leases = snapshot.kept(Date.now(), network).filter(filter(options)).toArray();
    if (options.json) io.stdout(formatJson(leases.map(leaseView)));
    else if (leases.length === 0) io.stdout(`No leases${forWhat({ ...options, network })}\n`);
    else io.stdout(leaseTable(leases, Date.now()));
    return exitStatus.done;
  },
});

interface Filters {
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

function forWhat({ network, state, pod, sandbox }: Filters & { readonly network: string | undefined }): string {
  const told = [
    network === undefined ? "" : ` in network "${network}"`,
    state === undefined ? "" : ` that are ${state}`,
    pod === undefined ? "" : ` of pod "${pod}"`,
    sandbox === undefined ? "" : ` of sandbox "${sandbox}"`,
  ];
  return printable(told.join(""));
}

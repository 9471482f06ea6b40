import {
  insertPort,
  type Monitored,
  type OvsdbClient,
  removePorts,
  Transaction,
  transactAndApply,
} from "../../agent/protocols/ovsdb/mod.ts";
import type { OpenVswitch } from "./open-vswitch.ts";

export const pacedColumns = {
  Open_vSwitch: ["cur_cfg"],
  Port: ["name"],
  Interface: ["name", "ofport", "error", "external_ids"],
} as const satisfies Monitored;

/** Times of one kind of change, in ms, each from its beginning to where ovs-vswitchd has carried it out. */
export interface Pace {
  readonly what: string;
  readonly direct: readonly number[];
  readonly vsctl: readonly number[];
}

/**
 * Adds internal ports to `br-int` and removes them, one after another, directly and by ovs-vsctl in turn, so that both
 * have the machine in the same mood.
 */
export async function measurePace(
  ovs: OpenVswitch,
  client: OvsdbClient<typeof pacedColumns>,
  count: number,
): Promise<readonly Pace[]> {
  const add = { what: "add a port", direct: [] as number[], vsctl: [] as number[] };
  const remove = { what: "remove a port", direct: [] as number[], vsctl: [] as number[] };
  for (let i = 0; i < count; i++) {
    add.direct.push(await timed(() => addDirectly(client, [`d${i}`])));
    add.vsctl.push(await timed(() => addByVsctl(ovs, [`v${i}`])));
    remove.direct.push(await timed(() => removeDirectly(client, `d${i}`)));
    remove.vsctl.push(await timed(() => ovs.vsctl("del-port", "br-int", `v${i}`)));
  }
  return [add, remove];
}

/** In one transaction, with an owner in `external_ids`. */
export async function addDirectly(
  client: OvsdbClient<typeof pacedColumns>,
  names: readonly string[],
  timeoutMs = 60_000,
): Promise<void> {
  const transaction = new Transaction(`add ${names.length} ports`);
  for (const name of names)
    insertPort(transaction, "br-int", {
      name,
      interface: { type: "internal", external_ids: { owner: `pod-${name}` } },
    });
  await transactAndApply(client, transaction, timeoutMs);
}

/** The same in one call. */
export async function addByVsctl(ovs: OpenVswitch, names: readonly string[]): Promise<void> {
  const command = (name: string): string[] => [
    ...["--", "add-port", "br-int", name],
    ...["--", "set", "Interface", name, "type=internal", `external_ids:owner=pod-${name}`],
  ];
  await ovs.vsctl(...names.flatMap(command));
}

async function removeDirectly(client: OvsdbClient<typeof pacedColumns>, name: string): Promise<void> {
  const port = client.view.named("Port", name);
  if (port === undefined) throw new Error(`Port ${name} is not there`);
  const transaction = new Transaction(`remove port "${name}"`);
  removePorts(transaction, "br-int", [port._uuid]);
  await transactAndApply(client, transaction);
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

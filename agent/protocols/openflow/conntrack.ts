import { formatIp, type Ip, ipOf } from "../../../shared/net/ip.ts";
import type { Connection, Nat } from "./action.ts";
import { InvalidFlow } from "./openflow-error.ts";
import type { WireReader } from "./wire-reader.ts";
import type { WireWriter } from "./wire-writer.ts";

/** @throws {InvalidFlow} */
export function ct(options: Partial<Omit<Connection, "t">>): Connection {
  const made: Connection = {
    t: "ct",
    commit: false,
    force: false,
    zone: 0,
    table: undefined,
    alg: 0,
    nat: undefined,
    exec: [],
    ...options,
  };
  checkConnection(made);
  return made;
}

function checkConnection({ commit, force, zone, table, exec, nat }: Connection): void {
  if (typeof zone === "number" && !(Number.isInteger(zone) && zone >= 0 && zone <= 0xffff)) {
    throw new InvalidFlow("an action ct", `its zone is ${zone}, wanted 0 to 65535`);
  }
  if (table !== undefined && !(Number.isInteger(table) && table >= 0 && table <= 254)) {
    throw new InvalidFlow("an action ct", `its table is ${table}, wanted 0 to 254`);
  }
  if (force && !commit) throw new InvalidFlow("an action ct", 'it has "force" without "commit"');
  if (exec.length > 0 && !commit) throw new InvalidFlow("an action ct", 'it sets fields without "commit"');
  if (typeof zone === "object" && zone.count !== 16) {
    throw new InvalidFlow("an action ct", `its zone is ${zone.count} bits of ${zone.field.name}, wanted 16`);
  }
  for (const action of exec) {
    const field = action.t === "set-field" ? action.field : action.t === "move" ? action.destination.field : undefined;
    if (field === undefined || (field.name !== "ct_mark" && field.name !== "ct_label")) {
      throw new InvalidFlow("an action ct", `it does "${action.t}" inside, wanted ct_mark and ct_label set`);
    }
  }
  if (nat !== undefined) checkNat(nat, commit);
}

function checkNat({ side, from, to, port, lastPort }: Nat, commit: boolean): void {
  const what = "an action ct with nat";
  if (side !== "existing" && !commit) throw new InvalidFlow(what, 'it has an address to set, wanted "commit" too');
  if (from === undefined && (to !== undefined || port !== undefined)) {
    throw new InvalidFlow(what, "it has a range without a first address");
  }
  if (side === "existing" && from !== undefined)
    throw new InvalidFlow(what, 'it has an address, wanted "src" or "dst"');
  if (from !== undefined && to !== undefined && (from.family !== to.family || from.value > to.value)) {
    throw new InvalidFlow(what, `it goes from "${formatIp(from)}" to "${formatIp(to)}", wanted a range`);
  }
  if (port === 0 || (lastPort !== undefined && lastPort < (port ?? Number.POSITIVE_INFINITY))) {
    throw new InvalidFlow(what, `its ports are ${port ?? "none"} to ${lastPort}, wanted a range from 1 on`);
  }
}

/** Names of NX_NAT_F_* and NX_NAT_RANGE_*. */
const flag = { src: 1, dst: 2, persistent: 4, hash: 8, random: 16 } as const;
const range = { ip4Min: 1, ip4Max: 2, ip6Min: 4, ip6Max: 8, portMin: 16, portMax: 32 } as const;

/** What follows the head of NXAST_NAT. */
export function writeNat(writer: WireWriter, { side, from, to, port, lastPort, persistent, choice }: Nat): void {
  const flags =
    (side === "existing" ? 0 : flag[side]) | (persistent ? flag.persistent : 0) | (choice ? flag[choice] : 0);
  const four = from?.family === 4;
  const present =
    (from === undefined ? 0 : four ? range.ip4Min : range.ip6Min) |
    (to === undefined ? 0 : four ? range.ip4Max : range.ip6Max) |
    (port === undefined ? 0 : range.portMin) |
    (lastPort === undefined ? 0 : range.portMax);
  writer.zeros(2).u16(flags).u16(present);
  for (const ip of [from, to]) if (ip !== undefined) writer.uint(ip.value, four ? 4 : 16);
  for (const number of [port, lastPort]) if (number !== undefined) writer.u16(number);
}

/** @throws {MalformedMessage} */
export function readNat(reader: WireReader): Nat {
  const flags = reader.skip(2).u16();
  const present = reader.u16();
  const address = (bit: number, family: 4 | 6): Ip | undefined =>
    present & bit ? ipOf(family, reader.uint(family === 4 ? 4 : 16)) : undefined;
  const [from4, to4] = [address(range.ip4Min, 4), address(range.ip4Max, 4)];
  const [from6, to6] = [address(range.ip6Min, 6), address(range.ip6Max, 6)];
  const port = present & range.portMin ? reader.u16() : undefined;
  const lastPort = present & range.portMax ? reader.u16() : undefined;
  const from = from4 ?? from6;
  const to = to4 ?? to6;
  const choice = flags & flag.hash ? "hash" : flags & flag.random ? "random" : undefined;
  return {
    side: flags & flag.src ? "src" : flags & flag.dst ? "dst" : "existing",
    ...(from && { from }),
    ...(to && { to }),
    ...(port !== undefined && { port }),
    ...(lastPort !== undefined && { lastPort }),
    ...(flags & flag.persistent && { persistent: true }),
    ...(choice && { choice }),
  };
}

import { isDeepStrictEqual } from "node:util";
import { type Call, describeCall, type Ended } from "./call.ts";
import type { Side } from "./sides.ts";

/** Where the two answered differently, and nothing in the design says so. */
export interface Difference {
  readonly call: Call;
  readonly why: string;
  readonly theirs: Ended;
  readonly ours: Ended;
}

/** What the calls so far have come to, for comparing the next. */
interface State {
  /** Of each attachment that holds addresses, the result that it got. */
  readonly held: Map<string, unknown>;
}

/** Runs the calls on both; answers the first difference. */
export async function firstDifference(calls: readonly Call[], peer: Side, own: Side): Promise<Difference | undefined> {
  const state: State = { held: new Map() };
  for (const call of calls) {
    const [theirs, ours] = await Promise.all([peer.run(call), own.run(call)]);
    const why = judge(call, theirs, ours, state);
    if (why !== undefined) return { call, why, theirs, ours };
    await bringInLine(call, theirs, ours, state, peer, own);
  }
  return undefined;
}

const nameOf = ({ containerId, ifname }: Call): string => `${containerId} ${ifname}`;

/** What is wrong with our answer, `undefined` where nothing is. */
function judge(call: Call, theirs: Ended, ours: Ended, { held }: State): string | undefined {
  const shape = malformed(call, ours);
  if (shape !== undefined) return shape;
  const before = call.verb === "ADD" ? held.get(nameOf(call)) : undefined;
  if (before !== undefined) {
    // Theirs is an error, or with addresses asked for a second set of them; ours is the same again, or a refusal.
    if (ours.status !== 0) return call.asks || call.broken ? undefined : "a repeated ADD failed";
    return isDeepStrictEqual(JSON.parse(ours.stdout), before) ? undefined : "a repeated ADD got another answer";
  }
  if (theirs.status !== 0 && ours.status !== 0) return undefined;
  if (theirs.status === 0 && ours.status === 0) {
    const same = isDeepStrictEqual(resultOf(theirs), resultOf(ours));
    return same ? undefined : "the results differ";
  }
  if (theirs.status === 0) return "ours is an error, theirs is not";
  // For DEL and CHECK only the names count: what else is wrong with the configuration must not leak an address.
  const lenient = call.broken && (call.verb === "DEL" || (call.verb === "CHECK" && held.has(nameOf(call))));
  return lenient ? undefined : "theirs is an error, ours is not";
}

function malformed(call: Call, { status, stdout }: Ended): string | undefined {
  if (status === 0) return (stdout === "") === (call.verb !== "ADD") ? undefined : "ours printed the wrong thing";
  try {
    const { code, msg } = JSON.parse(stdout);
    return status === 1 && Number.isInteger(code) && code > 0 && typeof msg === "string" && msg !== ""
      ? undefined
      : "ours is no error of the specification";
  } catch {
    return "ours is no error of the specification";
  }
}

/** The result without what its version leaves open: host-local writes an empty `dns` where later versions of it do not. */
function resultOf({ stdout }: Ended): unknown {
  if (stdout === "") return undefined;
  const { cniVersion, dns, ...result } = JSON.parse(stdout);
  const says = dns !== undefined && Object.keys(dns).length > 0;
  return { ...result, cniVersion: cniVersion === "1.1.0" ? "1.0.0" : cniVersion, ...(says ? { dns } : {}) };
}

/** Notes what happened, and where the design had them go apart, ends the attachment on both sides. */
async function bringInLine(
  call: Call,
  theirs: Ended,
  ours: Ended,
  { held }: State,
  peer: Side,
  own: Side,
): Promise<void> {
  const name = nameOf(call);
  const again = call.verb === "ADD" && held.has(name);
  if (call.verb === "ADD" && ours.status === 0 && !again) held.set(name, JSON.parse(ours.stdout));
  if (call.verb === "DEL" && ours.status === 0) held.delete(name);
  // Theirs moves on with an ADD that fails too, and would give other addresses from then on; ours has not happened.
  if (call.verb === "ADD" && (theirs.status !== 0 || again)) peer.turnBack();
  const apart = (again && call.asks) || (call.verb === "DEL" && theirs.status !== ours.status);
  if (!apart) return;
  const stdin = `{"cniVersion":"1.0.0","name":"net","ipam":{"dataDir":"@DATA@","subnet":"10.250.0.0/24"}}`;
  const del: Call = { ...call, verb: "DEL", args: "", stdin };
  for (const side of [peer, own]) {
    const ended = await side.run(del);
    if (ended.status !== 0) throw new Error(`Cannot bring both in line: ${describeCall(del)} answers ${ended.stdout}`);
  }
  held.delete(name);
}

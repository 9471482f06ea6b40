import type { Owner, Pod } from "../../shared/cni/types.ts";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";
import { type Infer, integer, object, optional, required, textThat, validate } from "../../shared/schema/mod.ts";
import type { Lease } from "../lease.ts";

/** That somebody had an address, from when until when. */
export interface Period {
  readonly owner: Owner;
  readonly pod?: Pod;
  readonly ip: Ip;
  /** Of the lease. */
  readonly generation: number;
  /** Milliseconds since 1970. */
  readonly fromMs: number;
  /** Absent: its owner has it still. */
  readonly untilMs?: number;
}

export type EndedPeriod = Period & { readonly untilMs: number };

/** What a lease says of its present or last holder. */
export function periodOf({ owner, pod, address, generation, allocatedAtMs, releasedAtMs }: Lease): Period {
  return {
    ...{ owner, ip: address.ip, generation, fromMs: allocatedAtMs },
    ...(pod === undefined ? {} : { pod }),
    ...(releasedAtMs === undefined ? {} : { untilMs: releasedAtMs }),
  };
}

/** Tells a period from all others: generations begin anew where a database was rebuilt from nothing. */
export const periodKey = ({ generation, fromMs }: Pick<Period, "generation" | "fromMs">): string =>
  `${generation} ${fromMs}`;

/** Runtimes' names are far shorter; what a caller sends is cut, so that a bound in bytes is one in periods too. */
const longestName = 256;

const name = textThat(`at most ${longestName} characters`, (text) => text.length <= longestName);
const time = integer(0, 8_640_000_000_000_000);

/** One line of the file, in short keys: there are thousands. */
const lineSchema = object({
  n: required(name, "network"),
  a: required(textThat("an IP address", (text) => parseIp(text) !== undefined)),
  s: required(name, "sandbox"),
  i: required(name, "interface"),
  ns: optional(name, "the pod's namespace"),
  p: optional(name, "the pod's name"),
  u: optional(name, "the pod's uid"),
  g: required(integer(0, Number.MAX_SAFE_INTEGER), "generation"),
  f: required(time, "from"),
  t: required(time, "until"),
});

const cut = (text: string): string => text.slice(0, longestName);

export function lineOf({ owner, pod, ip, generation, fromMs, untilMs }: EndedPeriod): string {
  const line: Infer<typeof lineSchema> = {
    ...{ n: cut(owner.network), a: formatIp(ip), s: cut(owner.sandboxId), i: cut(owner.ifname) },
    ...(pod === undefined ? {} : { ns: cut(pod.namespace), p: cut(pod.name), u: cut(pod.uid) }),
    ...{ g: generation, f: fromMs, t: untilMs },
  };
  return JSON.stringify(line);
}

/** @returns `undefined` for what is none, such as the half of a line that a killed process or a full disk has left */
export function readLine(text: string): EndedPeriod | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const read = validate(lineSchema, value, { unknownKeys: "ignored", maxIssues: 1 });
  if (read.t !== "ok") return undefined;
  const { n, a, s, i, ns, p, u, g, f, t } = read.value;
  const ip = parseIp(a);
  if (ip === undefined) return undefined;
  return {
    owner: { network: n, sandboxId: s, ifname: i },
    ...(p === undefined ? {} : { pod: { namespace: ns ?? "", name: p, uid: u ?? "" } }),
    ...{ ip, generation: g, fromMs: f, untilMs: t },
  };
}

import { dataDirHere } from "./call.ts";

/** Whole numbers from 0 to below the bound. */
export type Pick = (bound: number) => number;

export const oneOf = <T>(pick: Pick, choices: readonly T[]): T => choices[pick(choices.length)]!;

/** A network configuration as JSON, and addresses that a container may ask for in it. */
export interface NetworkConf {
  readonly conf: Record<string, unknown> & { ipam: Record<string, unknown> };
  readonly askable: readonly string[];
}

const versions = ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0", ""];

interface Piece {
  readonly ranges: readonly Record<string, unknown>[];
  readonly askable: readonly string[];
}

/** Range sets with room for few, so that most sequences come to their end. Each number of `n` is another subnet. */
const pieces: readonly ((pick: Pick, n: number) => Piece)[] = [
  (_, n) => ({ ranges: [{ subnet: `10.${n}.0.0/29` }], askable: [2, 5, 6, 1, 7].map((i) => `10.${n}.0.${i}`) }),
  (_, n) => ({ ranges: [{ subnet: `10.${n}.0.0/30` }], askable: [`10.${n}.0.2`, `10.${n}.0.3`] }),
  (pick, n) => ({
    ranges: [
      {
        subnet: `10.${n}.0.0/24`,
        rangeStart: `10.${n}.0.${10 + pick(3)}`,
        rangeEnd: `10.${n}.0.${13 + pick(4)}`,
        // Also one that lies in the window, and one that nobody would expect.
        ...oneOf(pick, [{}, { gateway: `10.${n}.0.12` }, { gateway: "192.168.77.1" }, { gateway: "" }]),
      },
    ],
    askable: [9, 11, 12, 13, 20].map((i) => `10.${n}.0.${i}`),
  }),
  // One subnet in two windows, and two subnets in one set.
  (_, n) => ({
    ranges: [
      { subnet: `10.${n}.0.0/24`, rangeStart: `10.${n}.0.20`, rangeEnd: `10.${n}.0.21` },
      { subnet: `10.${n}.0.0/24`, rangeStart: `10.${n}.0.5`, rangeEnd: `10.${n}.0.6` },
      { subnet: `10.${n}.1.0/30` },
    ],
    askable: [`10.${n}.0.6`, `10.${n}.1.2`, `10.${n}.0.7`],
  }),
  // From the network's address to the broadcast address, where they are asked for.
  (_, n) => ({
    ranges: [{ subnet: `10.${n}.0.0/30`, rangeStart: `10.${n}.0.0`, rangeEnd: `10.${n}.0.3` }],
    askable: [0, 1, 3].map((i) => `10.${n}.0.${i}`),
  }),
  (_, n) => ({ ranges: [{ subnet: `fd00:${n}::/126` }], askable: [`fd00:${n}::2`, `fd00:${n}:0:0::3`] }),
  (_, n) => ({
    ranges: [{ SUBNET: `fd00:${n}::/64`, RangeStart: `fd00:${n}::a`, rangeEND: `fd00:${n}::c`, rangeStart: null }],
    askable: [`fd00:${n}::b`, `FD00:${n}::C`],
  }),
];

/** A configuration that both must take. */
export function goodConf(pick: Pick): NetworkConf {
  const cniVersion = oneOf(pick, versions);
  const oldShape = ["0.1.0", "0.2.0", ""].includes(cniVersion);
  const sets = Array.from({ length: 1 + pick(3) }, (_, i) => oneOf(pick, pieces)(pick, 10 + i));
  const familyOf = (set: Piece): string => (JSON.stringify(set.ranges).includes("fd00") ? "6" : "4");
  // Old results have room for one address of each family.
  const fitting = sets.filter(
    (set, i) => !oldShape || sets.findIndex((other) => familyOf(other) === familyOf(set)) === i,
  );
  const place = pick(4);
  const [first, ...others] = fitting.map((set) => set.ranges);
  const single = first!.length === 1 && JSON.stringify(first).includes('"subnet"') ? first![0] : undefined;
  const placed =
    place === 0 && single !== undefined
      ? { ipam: { ...single, ranges: others } }
      : place === 1
        ? { ipam: { ranges: others }, runtimeConfig: { ipRanges: [first] } }
        : { ipam: { ranges: [first, ...others] } };
  const routes = oneOf(pick, [
    undefined,
    [{ dst: "0.0.0.0/0" }],
    [{ dst: "fd99::/16", gw: "fd99::1" }, { dst: "10.0.0.0/8" }],
  ]);
  const dns = pick(5) === 0 ? { resolvConf: `${dataDirHere}/resolv.conf` } : {};
  return {
    conf: {
      name: "net",
      ...(cniVersion === "" && pick(2) === 0 ? {} : { cniVersion }),
      ...placed,
      ipam: { type: "host-local", dataDir: dataDirHere, routes, ...dns, ...placed.ipam },
    },
    askable: fitting.flatMap((set) => set.askable),
  };
}

type Json = Record<string, unknown>;
const ranges = (sets: unknown): Json => ({ ipam: { dataDir: dataDirHere, ranges: sets } });
const range = (fields: Json): Json => ranges([[fields]]);

/** What makes a configuration that neither may take: each replaces these keys of a good one. */
export const flaws: readonly Json[] = [
  { ipam: undefined },
  { ipam: { dataDir: dataDirHere } },
  { ipam: "x" },
  { ipam: { dataDir: dataDirHere, rangeStart: "10.0.0.3" } },
  { name: undefined },
  { name: "a/b" },
  { cniVersion: "1.0" },
  { cniVersion: 1 },
  ranges([]),
  ranges([[]]),
  ranges("x"),
  ranges([{ subnet: "10.0.0.0/24" }]),
  range({}),
  range({ subnet: "10.0.0.0" }),
  range({ subnet: "10.0.0.1/24" }),
  range({ subnet: "10.0.0.0/31" }),
  range({ subnet: "fd00::/127" }),
  range({ subnet: "10.0.0.0/33" }),
  range({ subnet: "10.0.0.00/24" }),
  range({ subnet: 10 }),
  range({ subnet: "10.0.0.0/24", rangeStart: "10.0.1.1" }),
  range({ subnet: "10.0.0.0/24", rangeEnd: "9.255.255.255" }),
  range({ subnet: "10.0.0.0/24", rangeStart: "10.0.0.9", rangeEnd: "10.0.0.8" }),
  range({ subnet: "10.0.0.0/24", rangeStart: "fd00::1" }),
  range({ subnet: "10.0.0.0/24", gateway: "10.0.0" }),
  range({ subnet: "10.0.0.0/24", gateway: "10.0.0.01" }),
  ranges([[{ subnet: "10.0.0.0/24" }, { subnet: "10.0.0.0/25" }]]),
  ranges([[{ subnet: "10.0.0.0/24" }, { subnet: "fd00::/64" }]]),
  ranges([[{ subnet: "10.0.0.0/24" }], [{ subnet: "10.0.0.128/25" }]]),
  { cniVersion: "0.2.0", ...ranges([[{ subnet: "10.0.0.0/24" }], [{ subnet: "10.1.0.0/24" }]]) },
  { ipam: { dataDir: dataDirHere, ranges: [[{ subnet: "10.0.0.0/24" }]], routes: [{ dst: "x" }] } },
  { ipam: { dataDir: dataDirHere, ranges: [[{ subnet: "10.0.0.0/24" }]], resolvConf: "/nonexistent/resolv.conf" } },
  { runtimeConfig: { ips: [null] } },
  { runtimeConfig: { ips: [""] } },
  { runtimeConfig: { ips: ["10.0.0.300"] } },
  { runtimeConfig: { ipRanges: [[{ subnet: "10.0.0.9/24" }]] } },
  { args: { cni: { ips: ["x"] } } },
  { args: { cni: { ips: "10.0.0.3" } } },
];

import { describe, expect, test } from "vitest";
import { formatIp, parseCidr, parseIp } from "../../shared/net/ip.ts";
import { intervalsOf } from "../config/intervals.ts";
import type { Lease, LeaseState } from "../lease.ts";
import { mainKind, type Picture, pictureOf, rowsOf } from "./picture.ts";
import { pictureSvg } from "./picture-svg.ts";
import { pictureText, type TextStyle } from "./picture-text.ts";
import type { Pool } from "./pools.ts";

const run = (first: string, last = first) => ({ first: parseIp(first)!, last: parseIp(last)! });

function poolOf(first: string, last: string, changes: Partial<Pool> = {}): Pool {
  const windows = intervalsOf([run(first, last)]);
  const none = { gateways: [], excluded: [] };
  return { network: "blue", range: `${first}-${last}`, windows, ...none, from: "configuration", ...changes };
}
const lease = (address: string, state: LeaseState = "allocated"): Lease => ({
  owner: { network: "blue", sandboxId: `of-${address}`, ifname: "eth0" },
  rangeSet: 0,
  address: parseCidr(`${address}/8`) ?? parseCidr(`${address}/64`)!,
  state,
  pod: { namespace: "shop", name: "web", uid: "" },
  bootId: "",
  generation: 1,
  allocatedAtMs: 0,
});
const many = (prefix: string, from: number, count: number): readonly Lease[] =>
  Array.from({ length: count }, (_, i) => lease(`${prefix}${from + i}`));

/** One of each kind, by itself. */
const small = pictureOf(
  poolOf("10.1.0.1", "10.1.0.14", {
    gateways: intervalsOf([run("10.1.0.1")]),
    excluded: intervalsOf([run("10.1.0.8", "10.1.0.9")]),
  }),
  () => [lease("10.1.0.2"), lease("10.1.0.3", "cooling"), lease("10.1.0.4", "releasing")],
);
/** Of a large one the part that was used. */
const long = pictureOf(poolOf("10.2.0.0", "10.2.63.255", { from: "store" }), () => many("10.2.0.", 1, 100));
/** Only the first cells of each strip, which is what a test is about. */
const beginOf = (picture: Picture, count: number): Picture => ({
  ...picture,
  strips: picture.strips.map((strip) => ({ ...strip, cells: strip.cells.slice(0, count) })),
});
/** With several addresses in each cell. */
const binned: Picture = (() => {
  const whole = pictureOf(
    poolOf("fd00::", "fd00::ffff", { excluded: intervalsOf([run("fd00::40", "fd00::5f")]) }),
    () => [
      ...[1, 2, 3].map((i) => lease(`fd00::${i}`, "cooling")),
      lease("fd00::4", "releasing"),
      ...many("fd00::2", 0, 9),
      lease("fd00::ff00"),
    ],
  );
  return beginOf(whole, 4);
})();

describe("the cells of a pool", () => {
  const summary = ({ strips }: Picture) =>
    strips.map(({ cells, perCell, rest }) => [
      cells.length,
      perCell,
      formatIp(cells[0]!.first),
      formatIp(cells.at(-1)!.last),
      rest && `${formatIp(rest.first)}-${formatIp(rest.last)}`,
    ]);

  test.each([
    ["one for each address, as many as fit", "10.2.0.0", "10.2.7.255", [], [2048, 1n, "10.2.7.255", undefined]],
    ["of one address more, the part that was used", "10.2.0.0", "10.2.8.0", [], [256, 1n, "10.2.0.255", "10.2.8.0"]],
    ["at least 256", "10.2.0.0", "10.2.63.255", ["10.2.0.254"], [256, 1n, "10.2.0.255", "10.2.63.255"]],
    ["up to the next power of two", "10.2.0.0", "10.2.63.255", ["10.2.1.0"], [512, 1n, "10.2.1.255", "10.2.63.255"]],
    ["to its end where half of it was used", "10.2.0.0", "10.2.63.255", ["10.2.32.0"], [2048, 8n, "10.2.63.255"]],
    [
      "from its beginning, whatever that is",
      "10.2.0.3",
      "10.2.64.0",
      ["10.2.1.9"],
      [509, 1n, "10.2.1.255", "10.2.64.0"],
    ],
    ["at multiples of their size", "10.2.0.3", "10.2.64.0", ["10.2.40.0"], [2049, 8n, "10.2.64.0"]],
  ] as const)("%s", (_name, first, last, taken, [count, perCell, end, rest]) => {
    const picture = pictureOf(poolOf(first, last), () => taken.map((address) => lease(address)));
    const [after] = rest === undefined ? [] : [parseIp(end)!];
    const more = after && `${formatIp({ ...after, value: after.value + 1n })}-${rest}`;
    expect(summary(picture)).toEqual([[count, perCell, first, end, more]]);
  });

  test("have the leases that lie in them, and their numbers", () => {
    const [strip] = binned.strips;
    expect([strip?.perCell, strip?.cells.map(({ tally }) => [tally.allocated, tally.cooling, tally.excluded])]).toEqual(
      [
        32n,
        [
          [0n, 3n, 0n],
          [9n, 0n, 0n],
          [0n, 0n, 32n],
          [0n, 0n, 0n],
        ],
      ],
    );
    expect(strip?.cells.map((cell) => [mainKind(cell, binned.pool), cell.lease])).toEqual([
      ["cooling", undefined],
      ["allocated", undefined],
      ["excluded", undefined],
      ["free", undefined],
    ]);
    expect(small.strips[0]?.cells.map((cell) => [mainKind(cell, small.pool), cell.lease?.state])).toEqual([
      ["gateway", undefined],
      ["allocated", "allocated"],
      ["cooling", "cooling"],
      ["releasing", "releasing"],
      ...Array.from({ length: 3 }, () => ["free", undefined]),
      ...Array.from({ length: 2 }, () => ["excluded", undefined]),
      ...Array.from({ length: 5 }, () => ["free", undefined]),
    ]);
    expect([small.total, binned.total, binned.tally.allocated]).toEqual([11n, 65_504n, 10n]);
  });

  test("of a lease outside of the pool are none", () => {
    const picture = pictureOf(poolOf("10.1.0.1", "10.1.0.2"), () => [lease("10.1.0.2"), lease("10.9.0.1")]);
    expect([picture.tally.allocated, picture.tally.free]).toEqual([1n, 1n]);
  });

  test("stand in rows that begin at multiples of their length, one row as it comes", () => {
    const rows = (first: string, last: string, perRow: number) =>
      pictureOf(poolOf(first, last), () => []).strips.flatMap((strip) =>
        rowsOf(strip, perRow).map(({ offset, cells }) => [offset, formatIp(cells[0].first), cells.length]),
      );
    expect(rows("10.0.0.3", "10.0.0.10", 8)).toEqual([[0, "10.0.0.3", 8]]);
    expect(rows("10.0.0.3", "10.0.0.17", 8)).toEqual([
      [3, "10.0.0.3", 5],
      [0, "10.0.0.8", 8],
      [0, "10.0.0.16", 2],
    ]);
  });
});

describe("a picture", () => {
  test("in a browser", async () => {
    await expect(pictureSvg([small, binned, beginOf(long, 66)], "2026-01-02T03:04:05Z")).toMatchFileSnapshot(
      "picture.svg",
    );
  });

  const plain: TextStyle = { unicode: false, colour: false, columns: 80 };
  const textOf = (picture: Picture, style: Partial<TextStyle> = {}) =>
    pictureText(picture, { ...plain, ...style }).split("\n");

  test("in a terminal", () => {
    expect(textOf(small)).toEqual([
      "blue 10.1.0.1-10.1.0.14",
      "10.1.0.1  G#~%...xx.....",
      "# allocated 1  % releasing 1  ~ cooling 1  x excluded 2  G gateway 1  . free 8",
      "",
    ]);
    expect(textOf(binned, { unicode: true })).toEqual([
      "blue fd00::-fd00::ffff",
      "fd00::  ▂▃×·",
      "One cell is 32 addresses",
      "█ allocated 10  ▓ releasing 1  ▒ cooling 3  × excluded 32  ◆ gateway 0  · free 65490",
      "▁▂▃▄▅▆▇█ how much of a cell is taken",
      "",
    ]);
    expect(textOf(binned)).toContain("12345678 how much of a cell is taken");
    expect(textOf(long)).toEqual([
      "blue 10.2.0.0-10.2.63.255",
      `10.2.0.0    .${"#".repeat(63)}`,
      `10.2.0.64   ${"#".repeat(37)}${".".repeat(27)}`,
      `10.2.0.128  ${".".repeat(64)}`,
      `10.2.0.192  ${".".repeat(64)}`,
      "10.2.1.0-10.2.63.255 is not drawn: no pod has an address there",
      "# allocated 100  % releasing 0  ~ cooling 0  G gateway 0  . free 16284",
      "",
    ]);
  });

  test("has a colour for each kind", () => {
    const [, row = "", legend = ""] = textOf(small, { colour: true, unicode: true });
    const painted = ["35m◆", "34m█", "36m▒", "33m▓", "90m·", "90m×"].map((sign) => `\u001b[${sign}\u001b[0m`);
    const [gateway, allocated, cooling, releasing, free, excluded] = painted;
    const signs = [gateway, allocated, cooling, releasing, free, free, free, excluded, excluded];
    expect(row).toBe(`10.1.0.1  ${[...signs, free, free, free, free, free].join("")}`);
    expect(legend).toContain(`${allocated} allocated 1  ${releasing} releasing 1  ${cooling} cooling 1`);
  });

  test.each([
    [76, 64],
    [75, 32],
    [44, 32],
    [43, 16],
    [28, 16],
    [27, 8],
    [1, 8],
  ])("in a terminal of %i columns has rows of %i cells", (columns, cells) => {
    const [, , second = ""] = textOf(long, { columns });
    expect(second.split(/ +/)[1]).toHaveLength(cells);
  });
});

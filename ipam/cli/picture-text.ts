import { formatIp } from "../../shared/net/ip.ts";
import { formatInterval } from "../config/intervals.ts";
import { type Cell, density, mainKind, type Picture, rowsOf, type Strip } from "./picture.ts";
import { type AddressKind, addressKinds, poolText } from "./pools.ts";

export interface TextStyle {
  /** Whether characters beyond ASCII may be used. */
  readonly unicode: boolean;
  readonly colour: boolean;
  /** Width of the terminal. */
  readonly columns: number;
}

const glyphs: Readonly<Record<AddressKind, readonly [unicode: string, ascii: string]>> = {
  allocated: ["█", "#"],
  releasing: ["▓", "%"],
  cooling: ["▒", "~"],
  excluded: ["×", "x"],
  gateway: ["◆", "G"],
  free: ["·", "."],
};

/** ECMA-48 colours that differ on dark and light backgrounds; each kind has a sign of its own as well. */
const colours: Readonly<Record<AddressKind, number>> = {
  allocated: 34,
  releasing: 33,
  cooling: 36,
  excluded: 90,
  gateway: 35,
  free: 90,
};

const densities = { unicode: "▁▂▃▄▅▆▇█", ascii: "12345678" } as const;

/** A pool as rows of characters, with the address that each row begins with, and what the signs mean. */
export function pictureText({ pool, tally, strips }: Picture, style: TextStyle): string {
  const binned = strips.some(({ perCell }) => perCell > 1n);
  const legend = addressKinds
    .filter((kind) => kind !== "excluded" || pool.from === "configuration")
    .map((kind) => `${paint(glyphOf(kind, style), kind, style)} ${kind} ${tally[kind]}`);
  const scale = binned ? `${densityScale(style)} how much of a cell is taken\n` : "";
  return `${poolText(pool)}\n${strips.map((strip) => stripText(strip, pool, style)).join("\n")}${legend.join("  ")}\n${scale}`;
}

function stripText(strip: Strip, pool: Picture["pool"], style: TextStyle): string {
  const { perCell, rest } = strip;
  // Labels are as wide as the last address at most, which is known before the rows are.
  const widest = Math.max(...strip.cells.map(({ first }) => formatIp(first).length));
  const rows = rowsOf(strip, rowLength(style.columns - widest - 2));
  const width = Math.max(...rows.map(({ cells }) => formatIp(cells[0].first).length));
  const lines = rows.map(({ offset, cells }) => {
    const drawn = cells.map((cell) => paint(cellGlyph(cell, pool, style), mainKind(cell, pool), style)).join("");
    return `${formatIp(cells[0].first).padEnd(width)}  ${" ".repeat(offset)}${drawn}\n`;
  });
  const size = perCell === 1n ? "" : `One cell is ${perCell} addresses\n`;
  const more = rest === undefined ? "" : `${formatInterval(rest)} is not drawn: no pod has an address there\n`;
  return `${lines.join("")}${size}${more}`;
}

/** The longest power of two that fits, 64 at most, so that rows begin at round addresses. */
const rowLength = (room: number): number => (room >= 64 ? 64 : room >= 32 ? 32 : room >= 16 ? 16 : 8);

function cellGlyph(cell: Cell, pool: Picture["pool"], style: TextStyle): string {
  const kind = mainKind(cell, pool);
  if (cell.first.value === cell.last.value || kind === "excluded" || kind === "free") return glyphOf(kind, style);
  const steps = style.unicode ? densities.unicode : densities.ascii;
  // A single lease in a large cell must be visible.
  return steps[Math.min(steps.length - 1, Math.floor(density(cell) * steps.length))] ?? "";
}

const densityScale = ({ unicode }: TextStyle): string => (unicode ? densities.unicode : densities.ascii);

const glyphOf = (kind: AddressKind, { unicode }: TextStyle): string => glyphs[kind][unicode ? 0 : 1];

const paint = (text: string, kind: AddressKind, { colour }: TextStyle): string =>
  colour ? `\u001b[${colours[kind]}m${text}\u001b[0m` : text;

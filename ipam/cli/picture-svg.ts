import { formatIp } from "../../shared/net/ip.ts";
import { printable } from "../../shared/terminal/printable.ts";
import { formatInterval } from "../config/intervals.ts";
import { podText } from "./lease-view.ts";
import { type Cell, density, mainKind, type Picture, rowsOf, type Strip } from "./picture.ts";
import { type AddressKind, addressKinds, poolText } from "./pools.ts";

const cellsPerRow = 64;
const cellPx = 12;
const stepPx = 14;
/** The width of a label's character; the font is monospaced. */
const labelCharPx = 7;
const marginPx = 16;
const linePx = 22;

/** The palette of Okabe and Ito, distinct also for colour-blind readers, on light and dark backgrounds. */
const style = `
  svg { background: #ffffff; color: #1b1b1b; }
  text { font: 13px system-ui, "DejaVu Sans", sans-serif; fill: currentColor; }
  .title { font-size: 16px; font-weight: 600; }
  .label { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 11px; text-anchor: end; }
  .ground { fill: #ffffff; }
  .allocated { fill: #0072b2; } .releasing { fill: #e69f00; } .cooling { fill: #009e73; }
  .excluded { fill: #8a8a8a; } .gateway { fill: #cc79a7; } .free { fill: #e4e7ea; }
  @media (prefers-color-scheme: dark) {
    svg { background: #16191d; color: #e8eaed; }
    .ground { fill: #16191d; } .free { fill: #2b3138; }
  }`;

/** The pools as one self-contained SVG file without scripts. Every cell has a tooltip. */
export function pictureSvg(pictures: readonly Picture[], madeAt: string): string {
  const blocks: string[] = [];
  let y = marginPx;
  const labels = pictures
    .flatMap(({ strips }) => strips.flatMap((strip) => rowsOf(strip, cellsPerRow)))
    .map(({ cells }) => formatIp(cells[0].first));
  const left = marginPx + labelCharPx * Math.max(...labels.map(({ length }) => length)) + 10;
  for (const picture of pictures) {
    const block = poolBlock(picture, y, left);
    blocks.push(block.svg);
    y = block.bottom;
  }
  const width = left + cellsPerRow * stepPx + marginPx;
  const about = pictures.map((picture) => `${poolText(picture.pool)}: ${counts(picture).join(", ")}`).join("; ");
  return `<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" width="${width}" height="${y}" role="img" aria-labelledby="title desc">
<title id="title">Addresses of ${escaped(pictures.map(({ pool }) => poolText(pool)).join("; "))}</title>
<desc id="desc">As of ${escaped(madeAt)}. ${escaped(about)}</desc>
<style>${style}
</style>
<rect class="ground" width="100%" height="100%"/>
${blocks.join("\n")}
</svg>
`;
}

function poolBlock(picture: Picture, top: number, left: number): { readonly svg: string; readonly bottom: number } {
  const parts = [`<text class="title" x="${marginPx}" y="${top + 16}">${escaped(poolText(picture.pool))}</text>`];
  let y = top + linePx + 8;
  parts.push(legend(picture, y));
  y += linePx + 4;
  for (const strip of picture.strips) {
    const block = stripBlock(strip, picture.pool, y, left);
    parts.push(block.svg);
    y = block.bottom + 8;
  }
  return { svg: parts.join("\n"), bottom: y + 8 };
}

const counts = ({ tally, pool }: Picture): readonly string[] => kindsOf(pool).map((kind) => `${tally[kind]} ${kind}`);

const kindsOf = (pool: Picture["pool"]): readonly AddressKind[] =>
  addressKinds.filter((kind) => kind !== "excluded" || pool.from === "configuration");

function legend({ tally, pool }: Picture, y: number): string {
  let x = marginPx;
  const parts = kindsOf(pool).map((kind) => {
    const text = `${kind} ${tally[kind]}`;
    const part = `<rect class="${kind}" x="${x}" y="${y}" width="${cellPx}" height="${cellPx}" rx="2"/><text x="${x + cellPx + 6}" y="${y + 11}">${text}</text>`;
    x += cellPx + 6 + text.length * 8 + 18;
    return part;
  });
  return parts.join("\n");
}

function stripBlock(strip: Strip, pool: Picture["pool"], top: number, left: number) {
  const { perCell, rest } = strip;
  const parts: string[] = [];
  let y = top;
  for (const { offset, cells } of rowsOf(strip, cellsPerRow)) {
    parts.push(`<text class="label" x="${left - 10}" y="${y + 10}">${formatIp(cells[0].first)}</text>`);
    parts.push(...cells.map((cell, column) => cellRect(cell, pool, left + (offset + column) * stepPx, y)));
    y += stepPx;
  }
  const notes = [
    ...(perCell === 1n ? [] : [`One cell is ${perCell} addresses; the fuller, the stronger its colour`]),
    ...(rest === undefined ? [] : [`${formatInterval(rest)} is not drawn: no pod has an address there`]),
  ];
  for (const note of notes) {
    parts.push(`<text x="${left}" y="${y + 16}">${note}</text>`);
    y += linePx;
  }
  return { svg: parts.join("\n"), bottom: y };
}

function cellRect(cell: Cell, pool: Picture["pool"], x: number, y: number): string {
  const kind = mainKind(cell, pool);
  const isBinned = cell.first.value !== cell.last.value;
  const place = `x="${x}" y="${y}" width="${cellPx}" height="${cellPx}" rx="2"`;
  const title = `<title>${escaped(cellTitle(cell, kind))}</title>`;
  if (!isBinned || kind === "free" || kind === "excluded") return `<rect class="${kind}" ${place}>${title}</rect>`;
  // A single lease in a large cell must be visible.
  const opacity = Math.max(0.25, density(cell)).toFixed(2);
  return `<g>${title}<rect class="free" ${place}/><rect class="${kind}" ${place} fill-opacity="${opacity}"/></g>`;
}

function cellTitle({ first, last, tally, lease }: Cell, kind: AddressKind): string {
  if (first.value !== last.value) {
    const told = addressKinds.filter((each) => tally[each] > 0n).map((each) => `${tally[each]} ${each}`);
    return `${formatIp(first)}-${formatIp(last)}: ${told.join(", ")}`;
  }
  if (lease === undefined) return `${formatIp(first)} ${kind}`;
  const pod = podText(lease);
  return `${formatIp(first)} ${kind}${pod === undefined ? "" : `, pod ${pod}`}, sandbox ${lease.owner.sandboxId} (${lease.owner.ifname})`;
}

/** XML cannot hold most control characters, not even escaped. */
const escaped = (text: string): string =>
  printable(text)
    .replace(/[\ufffe\uffff\ud800-\udfff]/gu, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");

import { resolve } from "node:path";
import { formatIp } from "../../shared/net/ip.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../shared/terminal/terminal-io.ts";
import { formatInterval } from "../config/intervals.ts";
import { mainKind, type Picture, pictureOf } from "./picture.ts";
import { pictureSvg } from "./picture-svg.ts";
import { pictureText, type TextStyle } from "./picture-text.ts";
import { addressKinds, withPools } from "./pools.ts";
import { confOption, dataDirOption, jsonOption, networkOption, scopeOf } from "./scope.ts";
import { writeFileWhole } from "./write-file.ts";

const action = "draw the pool";

export const map = defineCommand({
  action,
  about: `Draws each range set of a network address by address, or where there are too many, a stretch of addresses as one
cell: what is allocated, releasing, cooling, excluded, a gateway's, free.

Without --conf the ranges are what the database remembers: those that gave an address, without what is excluded.
Colours only on a terminal and without NO_COLOR.`,
  options: {
    conf: confOption,
    network: networkOption,
    svg: { value: "FILE", of: "file", help: "writes the picture to a file instead, which any browser shows" },
    ascii: { help: "no characters beyond ASCII, as where LANG names no UTF-8" },
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: { 3: "there is no database, or it knows no such network or no ranges" },
  run: async ({ options }, io) => {
    const scope = await scopeOf(options, io);
    return withPools(scope, action, io, async ({ pools, leases }) => {
      if (pools.length === 0) {
        const whose = scope.network === undefined ? "" : ` of network "${scope.network}"`;
        io.stderr(
          `${printable(`Cannot ${action}: no address${whose} was given yet, wanted one; --conf FILE shows the ranges of a configuration`)}\n`,
        );
        return exitStatus.notThere;
      }
      const pictures = pools.map((pool) => pictureOf(pool, () => leases(pool.network)));
      if (options.svg !== undefined) {
        const path = resolve(options.svg);
        await writeFileWhole(path, pictureSvg(pictures, new Date().toISOString()));
        io.stderr(`Wrote ${printable(path)}\n`);
      }
      if (options.json) io.stdout(formatJson({ pools: pictures.map(pictureView) }));
      else if (options.svg === undefined) {
        const style = styleFor(io, options.ascii);
        io.stdout(pictures.map((picture) => pictureText(picture, style)).join("\n"));
      }
      return exitStatus.done;
    });
  },
});

function styleFor({ env, columns }: TerminalIo, ascii: boolean): TextStyle {
  const locale = env["LC_ALL"] || env["LC_CTYPE"] || env["LANG"] || "";
  return {
    unicode: !ascii && (/utf-?8/i.test(locale) || env["WT_SESSION"] !== undefined),
    colour: columns !== undefined && (env["NO_COLOR"] ?? "") === "" && env["TERM"] !== "dumb",
    columns: columns ?? 100,
  };
}

/** Equal neighbours become one entry, so that a picture of a mostly empty pool stays small. */
function pictureView({ pool, tally, total, strips }: Picture) {
  const { gateway: gateways, ...counts } = tally;
  return {
    network: pool.network,
    range: pool.range,
    from: pool.from,
    total,
    ...counts,
    gateways,
    strips: strips.map(({ cells, perCell, rest }) => ({
      addressesPerCell: perCell,
      cells: cells
        .filter((cell) => addressKinds.some((kind) => kind !== "free" && cell.tally[kind] > 0n))
        .map((cell) => {
          const taken = Object.fromEntries(
            addressKinds.flatMap((kind) => (cell.tally[kind] > 0n ? [[kind, cell.tally[kind]]] : [])),
          );
          return { first: formatIp(cell.first), last: formatIp(cell.last), kind: mainKind(cell, pool), counts: taken };
        }),
      ...(rest === undefined ? {} : { rest: formatInterval(rest) }),
    })),
  };
}

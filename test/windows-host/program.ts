import { readFileSync, writeFileSync } from "node:fs";
import { openHostRunner } from "../../agent/datapath/hns/windows-host/powershell.ts";
import type { Statement } from "../../agent/datapath/hns/windows-host/script.ts";
import { reasonOf } from "../../shared/reason.ts";

/**
 * Compiled for Windows: runs the statements in the file of the first argument, with the deadline of the second, and
 * says what came of it.
 */
const [, , file = "", deadlineMs = ""] = process.argv;
try {
  const statements = JSON.parse(readFileSync(file, "utf8")) as Statement[];
  const answer = await openHostRunner(Number(deadlineMs)).run("try it", statements);
  writeFileSync(1, JSON.stringify([...answer]));
} catch (caught) {
  writeFileSync(2, reasonOf(caught));
  process.exitCode = 1;
}

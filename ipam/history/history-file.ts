import { existsSync } from "node:fs";
import { CniCode, CniError } from "../../shared/errors.ts";
import { paths } from "../../shared/os/paths.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { reasonOf } from "../../shared/reason.ts";
import { type EndedPeriod, readLine } from "./period.ts";

/** Of one of two files, a full one and the one that is written: some 16,000 periods each. */
export const historyFileBytes = 4 * 1024 * 1024;
/** A file is full once it has so many bytes, and the last write may go beyond. */
const longestFileBytes = 2 * historyFileBytes;

export const historyIn = (dataDir: string): string => `${dataDir}${paths.directorySeparator}history.jsonl`;

/**
 * The periods that have ended and are still known, in the order in which they were written.
 * @param isWanted looks at a line before it is read: most questions are about one address
 * @throws {CniError} 101 where a file is there and cannot be read
 */
export function readEnded(dataDir: string, isWanted: (line: string) => boolean = () => true): readonly EndedPeriod[] {
  const file = historyIn(dataDir);
  return [`${file}.1`, file].flatMap((path) =>
    linesIn(path)
      .filter(isWanted)
      .flatMap((line) => readLine(line) ?? []),
  );
}

function linesIn(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  try {
    return readSmallFile(path, longestFileBytes).split("\n");
  } catch (caught) {
    throw new CniError(CniCode.ipamFailure, `Cannot read the history of addresses "${path}": ${reasonOf(caught)}`);
  }
}

import { existsSync, readdirSync } from "node:fs";
import { CniCode, CniError } from "../../shared/errors.ts";
import { endpointRecords } from "../datapath/hns/endpoint-records.ts";
import { runProgram } from "../run-program.ts";
import { hostRecords } from "../windows-host/mod.ts";
import type { Step } from "./step.ts";

/** Each step of it has a deadline of its own; together they take a minute at most. */
const cleanUpMs = 180_000;

/**
 * What has the stopped agent take back its changes of the host's network, where there are any on record. In a process
 * of its own, as an operator would: `pipette agent --cleanup`.
 */
export function planHostCleanUp(dataDir: string, configFile: string): readonly Step[] {
  const [record] = [hostRecords(dataDir), endpointRecords(dataDir)].filter(holdsAnything);
  if (record === undefined) return [];
  const args = ["agent", "--cleanup", "--config", configFile];
  const run = async (): Promise<undefined> => {
    const ended = await runProgram(process.execPath, args, { deadlineMs: cleanUpMs });
    if (ended.failure === "") return;
    throw new CniError(
      CniCode.io,
      `Cannot take the host's network set-up back: "pipette ${args.join(" ")}" did not succeed: ${ended.failure}, wanted status 0`,
      { details: ended.stderr },
    );
  };
  return [{ action: "remove", target: record, detail: `the host's network set-up: pipette ${args.join(" ")}`, run }];
}

const holdsAnything = (directory: string): boolean => existsSync(directory) && readdirSync(directory).length > 0;

import { existsSync, readdirSync } from "node:fs";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { runProgram } from "../../platform/run-program.ts";
import type { Step } from "./plan.ts";

/** Each step of it has a deadline of its own; together they take a minute at most. */
const cleanUpMs = 180_000;

/** Plans the clean-up of a Windows host's network after the agent has stopped, if changes are on record. */
export async function planHostCleanUp(dataDir: string, configFile: string): Promise<readonly Step[]> {
  const { recordDirectories } = await import("../../datapath/hns/mod.ts");
  const [record] = recordDirectories(dataDir).filter(holdsAnything);
  return record === undefined ? [] : [cleanUpStep(record, configFile)];
}

/** The same on Linux, where the configuration says what may exist. */
export const planNetworkCleanUp = (config: AgentConfig | undefined, configFile: string): readonly Step[] =>
  config === undefined
    ? []
    : [cleanUpStep(config.networks.map(({ bridge }) => `bridge ${bridge}`).join(", "), configFile)];

/** In a process of its own, as an operator would: `pipette agent --cleanup`. */
function cleanUpStep(target: string, configFile: string): Step {
  const args = ["agent", "--cleanup", "--config", configFile];
  const run = async (): Promise<string> => {
    const ended = await runProgram(process.execPath, args, { deadlineMs: cleanUpMs });
    // Each line of its table but the first is a step.
    if (ended.failure === "") return ended.stdout.trim().split("\n").slice(1).map(oneLine).join("; ");
    throw new CniError(
      CniCode.io,
      `Cannot take the host's network set-up back: "pipette ${args.join(" ")}" did not succeed: ${ended.failure}`,
      { details: ended.stderr },
    );
  };
  return { action: "remove", target, detail: `the host's network set-up: pipette ${args.join(" ")}`, run };
}

const oneLine = (text: string): string => text.replaceAll(/ {2,}/g, " ").trim();
const holdsAnything = (directory: string): boolean => existsSync(directory) && readdirSync(directory).length > 0;

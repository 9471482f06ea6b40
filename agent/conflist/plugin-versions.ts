import { join } from "node:path";
import { type CniVersion, supportedVersions } from "../../shared/cni/versions.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import { runProgram } from "../platform/run-program.ts";

/** An answer takes milliseconds; one that hangs is not to keep the node from its network for long. */
const longestAnswerMs = 2_000;

/**
 * The versions of the specification that all of these plugins say they know, ours among them. The runtime goes by one of
 * them for the whole list: where 1.1.0 is offered, a plugin that does not know it, such as Debian 12's portmap, fails
 * at each STATUS, and containerd 2 has a node that never gets ready.
 * @param directory where their executables are; one that is not there, or says nothing, knows none
 */
export async function knownToAll(types: readonly string[], directory: string): Promise<readonly CniVersion[]> {
  const known = await Promise.all(types.map((type) => versionsKnownTo(join(directory, type))));
  return supportedVersions.filter((version) => known.every((versions) => versions.has(version)));
}

async function versionsKnownTo(executable: string): Promise<ReadonlySet<unknown>> {
  const { stdout } = await runProgram(executable, [], {
    deadlineMs: longestAnswerMs,
    input: JSON.stringify({ cniVersion: "1.0.0" }),
    env: { CNI_COMMAND: "VERSION" },
  });
  try {
    const answer: unknown = JSON.parse(stdout);
    const versions = isObject(answer) ? answer["supportedVersions"] : undefined;
    return new Set(Array.isArray(versions) ? versions : []);
  } catch {
    return new Set(); // It could not be started, or what it says is no JSON.
  }
}

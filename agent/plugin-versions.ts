import { join } from "node:path";
import { type CniVersion, supportedVersions } from "../shared/cni/versions.ts";
import { isObject } from "../shared/json-fields.ts";

/** An answer takes milliseconds; one that hangs is not to keep the node from its network. */
const longestAnswerMs = 2_000;

/**
 * The versions of the specification that all of these plugins say they know, ours among them. The runtime goes by one of
 * them for the whole list: where 1.1.0 is offered, a plugin that does not know it, such as Debian 12's portmap, fails
 * at each STATUS, and containerd 2 has a node that never gets ready.
 * @param directory where their executables are; one that is not there, or says nothing, knows none
 */
export function knownToAll(types: readonly string[], directory: string): readonly CniVersion[] {
  const known = types.map((type) => versionsKnownTo(join(directory, type)));
  return supportedVersions.filter((version) => known.every((versions) => versions.has(version)));
}

function versionsKnownTo(executable: string): ReadonlySet<unknown> {
  try {
    const { stdout } = Bun.spawnSync([executable], {
      env: { CNI_COMMAND: "VERSION" },
      stdin: new TextEncoder().encode(JSON.stringify({ cniVersion: "1.0.0" })),
      stderr: "ignore",
      timeout: longestAnswerMs,
    });
    const answer: unknown = JSON.parse(stdout.toString());
    const versions = isObject(answer) ? answer["supportedVersions"] : undefined;
    return new Set(Array.isArray(versions) ? versions : []);
  } catch {
    return new Set(); // It could not be started, or what it says is no JSON.
  }
}

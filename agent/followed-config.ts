import type { Logger } from "../shared/log.ts";
import type { ReadDocument } from "../shared/schema/mod.ts";
import type { AgentConfig } from "./config/agent-config.ts";
import { FollowedFile } from "./config/followed-file.ts";
import { parseAgentConfig } from "./config/parse-agent-config.ts";
import { openFiles } from "./config/read-config.ts";
import { wrongSystem } from "./data-path-choice.ts";

/** The kubelet brings a changed ConfigMap within a minute or so. */
const intervalMs = 1000;
/** The largest ConfigMap. */
const maxBytes = 1024 * 1024;

export interface FollowedConfig extends AsyncDisposable {
  /** Resolves with a text for the log once the file holds another valid configuration. */
  readonly changed: Promise<string>;
  /** Why the file's present content is not in force, and since when; nothing if it is. */
  refused(): string | undefined;
}

/**
 * Follows agent.yaml while an agent runs. An invalid file changes nothing and is logged, so that a mistake in a
 * cluster's ConfigMap does not stop every node's agent; a file with the same meaning changes nothing either.
 */
export function followConfig(file: string, config: AgentConfig, logger: Logger): FollowedConfig {
  const changed = Promise.withResolvers<string>();
  const read = (text: string): ReadDocument<AgentConfig> => {
    const parsed = parseAgentConfig(text, file);
    if (parsed.t === "wrong") return parsed;
    const problems = [...openFiles(file, parsed.config), wrongSystem(parsed.config)].filter((is) => is !== undefined);
    return problems.length > 0 ? { t: "wrong", problems } : { t: "ok", value: parsed.config };
  };
  let refused: { readonly fault: string; readonly since: Date } | undefined;
  const told = (fault: string | undefined): void => {
    if (fault !== refused?.fault) refused = fault === undefined ? undefined : { fault, since: new Date() };
  };
  const options = { path: file, what: "configuration", maxBytes, read, logger, told, intervalMs };
  const followed = new FollowedFile<AgentConfig>(options);
  followed.subscribe((value) => {
    if (!Bun.deepEquals(value, config)) changed.resolve(`"${file}" has changed`);
  });
  const refusedText = (): string | undefined =>
    refused === undefined
      ? undefined
      : `"${file}" is refused since ${refused.since.toISOString()}, and the configuration from before stays in force: ${refused.fault}`;
  return {
    changed: changed.promise,
    refused: refusedText,
    [Symbol.asyncDispose]: () => followed[Symbol.asyncDispose](),
  };
}

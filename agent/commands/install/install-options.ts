import { paths } from "../../../shared/os/paths.ts";
import type { OptionSpec } from "../../../shared/terminal/command.ts";

/** Options that both commands have. */
export const placeOptions = {
  "bin-dir": {
    value: "DIR",
    of: "directory",
    help: `where the runtime looks for plugins (default ${paths.cniBinDir})`,
  },
  config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
  "link-dir": {
    value: "DIR",
    of: "directory",
    help: 'Linux: where "pipette" is a link to it (default /usr/local/bin, where PATH has that)',
  },
  "dry-run": { help: "only says what would be done" },
  json: { help: "the steps and warnings as one JSON object" },
  progress: { help: "says how far it has come on stderr, also where that is no terminal" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

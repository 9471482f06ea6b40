import { statSync } from "node:fs";
import { isWindows } from "../../shared/os/platform.ts";
import type { AgentConfig } from "./agent-config.ts";

/** A file that says who this node is, and that everybody on the node can read. */
export interface OpenSecret {
  readonly path: string;
  /** `"/etc/pipette/etcd.key" can be read by everybody (mode 644)`. */
  readonly what: string;
}

const readableByAll = 0o004;

/** Of the files that the configuration names; agent.yaml itself holds no secrets. On Windows permissions say it. */
export function openSecrets({ nodes }: AgentConfig): readonly OpenSecret[] {
  if (isWindows || nodes === undefined) return [];
  const { registry } = nodes;
  const files = registry.type === "etcd" ? [registry.key] : registry.type === "kubernetes" ? [registry.token] : [];
  return files.flatMap((path) => {
    const mode = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.mode;
    if (path === undefined || mode === undefined || (mode & readableByAll) === 0) return [];
    return [{ path, what: `"${path}" can be read by everybody (mode ${(mode & 0o777).toString(8)})` }];
  });
}

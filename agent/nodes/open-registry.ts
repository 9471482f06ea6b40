import { CniCode, CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import type { NodesConfig } from "../config/agent-config.ts";
import type { NodeRegistry } from "./node-registry.ts";

/** The registry that the configuration names; only its code is loaded, and nothing is asked yet. */
export async function openRegistry({ registry }: NodesConfig, logger: Logger): Promise<NodeRegistry> {
  switch (registry.type) {
    case "static": {
      const { StaticRegistry } = await import("./static/static-registry.ts");
      return new StaticRegistry({ file: registry.file, logger });
    }
    case "etcd": {
      const { createEtcdRegistry } = await import("./etcd/mod.ts");
      return createEtcdRegistry({ ...registry, logger });
    }
    case "kubernetes":
      throw new CniError(CniCode.invalidConfig, `Cannot open the registry: "${registry.type}" is still to come`);
  }
}

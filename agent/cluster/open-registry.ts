import type { Logger } from "../../shared/log.ts";
import type { NodesConfig } from "../config/agent-config.ts";
import type { NodeRegistry } from "./node-registry.ts";

/**
 * The registry that the configuration names. Only its code is loaded, and no request is made yet.
 * @throws {CniError} code 7 where it cannot be used as it is configured
 */
export async function openRegistry({ registry }: NodesConfig, logger: Logger): Promise<NodeRegistry> {
  switch (registry.type) {
    case "static": {
      const { StaticRegistry } = await import("./static/static-registry.ts");
      return new StaticRegistry({ file: registry.file, logger });
    }
    case "etcd": {
      const { createEtcdRegistry } = await import("./etcd/etcd-registry.ts");
      return createEtcdRegistry({ ...registry, logger });
    }
    case "kubernetes": {
      const { ApiClient, serviceAccountAccess } = await import("../../shared/kubernetes/mod.ts");
      const { KubernetesRegistry } = await import("./kubernetes/kubernetes-registry.ts");
      const { env } = process;
      const access = serviceAccountAccess(registry, env, "nodes.registry.server");
      return new KubernetesRegistry({ api: new ApiClient(access, { env }), logger });
    }
  }
}

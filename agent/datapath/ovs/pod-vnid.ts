import { CniCode, CniError } from "../../../shared/errors.ts";
import type { TenantRegistry } from "../../cluster/node-registry.ts";
import type { PodPort } from "./overlay-node.ts";

/**
 * The VNID of a pod's project: the known one, else requested from the registry, which allocates it. 0 if projects are
 * not isolated.
 * @throws {CniError} 7 where nobody said which project it is, and as `TenantRegistry.vnidOf`
 */
export async function vnidFor(
  { pod, owner }: PodPort,
  tenants: TenantRegistry | undefined,
  known: ReadonlyMap<string, number> | undefined,
): Promise<number> {
  if (tenants === undefined) return 0;
  const project = pod?.namespace ?? "";
  if (project !== "") return known?.get(project) ?? (await tenants.vnidOf(project));
  throw new CniError(
    CniCode.invalidConfig,
    `Cannot tell the project of sandbox "${owner.sandboxId}": CNI_ARGS has no K8S_POD_NAMESPACE, wanted one where "tenants" is "multitenant"`,
  );
}

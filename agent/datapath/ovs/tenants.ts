import { CniCode, CniError } from "../../../shared/errors.ts";
import type { TenantRegistry } from "../../cluster/node-registry.ts";
import type { PodPort } from "./overlay-node.ts";
import type { PodPorts } from "./pod-ports.ts";

/**
 * The VNID of a pod's project: as it was heard of last, else asked for, which allocates it. 0 where projects are not
 * kept apart.
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

/** A VNID that is heard of later than a pod's ADD is the one that counts. @throws {OvsdbError | CniError} */
export async function followVnids(ports: PodPorts, known: ReadonlyMap<string, number> | undefined): Promise<void> {
  if (known === undefined) return;
  for (const port of [...ports.wanted]) {
    const vnid = known.get(port.pod?.namespace ?? "");
    if (vnid !== undefined && vnid !== port.vnid) await ports.retenant(port, vnid);
  }
}

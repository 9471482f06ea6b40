import { withTimeout } from "../../shared/async/with-timeout.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import {
  type Followed,
  type ListedNode,
  type NodeRegistry,
  privilegedProject,
  type TenantRegistry,
} from "./node-registry.ts";

/** The nodes of a registry, read once. */
export interface NodeListing {
  /** The registry's, for people. */
  readonly name: string;
  /** Its own count of its states; absent where it has none. */
  readonly revision?: number;
  readonly nodes: readonly ListedNode[];
  /** Permissions of the caller that no node needs; empty if they were not asked for. */
  readonly excessRights: readonly string[];
}

/** A project as the registry has it. */
export interface ListedTenant {
  readonly project: string;
  readonly vnid: number;
  readonly isConfirmed: boolean;
  /** With others, or with all. */
  readonly isShared: boolean;
}

export interface TenantListing {
  readonly name: string;
  /** Absent where this registry keeps none. */
  readonly tenants?: readonly ListedTenant[];
}

/** How long the first list of tenants may take. */
const listMs = 10_000;

type Vnids = ReadonlyMap<string, number>;

/** @param rights also looks for rights @throws {CniError} 11 */
export async function listNodes(
  registry: NodeRegistry,
  { rights }: { readonly rights: boolean },
): Promise<NodeListing> {
  const listed = (await registry.listAt?.()) ?? { nodes: await registry.list() };
  return { name: registry.name, ...listed, excessRights: rights ? ((await registry.excessRights?.()) ?? []) : [] };
}

/** @throws {CniError} 11 */
export async function listTenants({ name, tenants }: NodeRegistry): Promise<TenantListing> {
  return { name, ...(tenants === undefined ? {} : { tenants: await listedTenants(tenants, name) }) };
}

/** By name. @throws {CniError} 11 */
export async function listedTenants(tenants: TenantRegistry, registry: string): Promise<readonly ListedTenant[]> {
  const told = await firstOf(tenants.follow(), registry);
  const confirmed = tenants.followConfirmed === undefined ? told : await firstOf(tenants.followConfirmed(), registry);
  const holders = new Map<number, number>();
  for (const vnid of told.values()) holders.set(vnid, (holders.get(vnid) ?? 0) + 1);
  const isShared = (project: string, vnid: number): boolean =>
    vnid === 0 ? project !== privilegedProject : (holders.get(vnid) ?? 0) > 1;
  return [...told]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([project, vnid]) => ({
      project,
      vnid,
      isConfirmed: confirmed.get(project) === vnid,
      isShared: isShared(project, vnid),
    }));
}

async function firstOf(source: Followed<Vnids>, registry: string): Promise<Vnids> {
  await using followed = source;
  const { promise, resolve } = Promise.withResolvers<Vnids>();
  using _ = followed.subscribe(resolve);
  return await withTimeout(promise, listMs, () => {
    const is = `${registry} has told none within ${listMs} ms`;
    throw new CniError(CniCode.tryAgainLater, `Cannot list the tenants: ${is}`);
  });
}

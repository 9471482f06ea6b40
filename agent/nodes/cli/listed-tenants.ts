import { CniCode, CniError } from "../../../shared/errors.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { Followed, TenantRegistry } from "../node-registry.ts";
import { privilegedProject } from "../project-name.ts";
import { fail, withRegistry } from "./with-registry.ts";

/** How long the first list may take. */
const listMs = 10_000;

type Vnids = ReadonlyMap<string, number>;

/** A project as the registry has it. */
export interface ListedTenant {
  readonly project: string;
  readonly vnid: number;
  readonly isConfirmed: boolean;
  /** With others, or with all. */
  readonly isShared: boolean;
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
  const { promise, resolve, reject } = Promise.withResolvers<Vnids>();
  const late = new CniError(
    CniCode.tryAgainLater,
    `Cannot list the tenants: ${registry} has told none within ${listMs} ms, wanted an answer`,
  );
  const timer = setTimeout(() => reject(late), listMs);
  using _ = followed.subscribe(resolve);
  return await promise.finally(() => clearTimeout(timer));
}

/** Opens the registry that the configuration names, and does `work` with its projects. @returns exit status */
export function withTenants(
  options: { readonly config: string | undefined },
  action: string,
  io: TerminalIo,
  work: (tenants: TenantRegistry, registry: string) => Promise<number>,
): Promise<number> {
  return withRegistry(options, action, io, async ({ registry }) => {
    const { tenants, name } = registry;
    if (tenants === undefined) return fail(io, action, `${name} keeps no tenants`, "one in etcd, or a file");
    return work(tenants, name);
  });
}

import { CniCode, CniError } from "../../../shared/errors.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import type { TenantRegistry } from "../node-registry.ts";
import { isProjectName, projectNameRule } from "../project-name.ts";
import { configOption, fail, jsonOption, withRegistry } from "./with-registry.ts";

const options = { config: configOption, json: jsonOption };
const project = { name: "PROJECT", help: "a namespace of Kubernetes" };
/** How long the first list may take. */
const listMs = 10_000;

export const listTenants = defineCommand({
  action: "list the tenants",
  about: `Shows every project that has a VNID. Pods reach those of projects with the same VNID; those of VNID 0 reach all, and
are reached by all.`,
  options,
  run: (line, io) =>
    withTenants(line.options, "list the tenants", io, async (tenants, name) => {
      const found = [...(await firstList(tenants, name))].sort(([a], [b]) => (a < b ? -1 : 1));
      if (line.options.json) io.stdout(formatJson({ registry: name, tenants: Object.fromEntries(found) }));
      else if (found.length === 0) io.stdout(`No tenants in ${name}\n`);
      else io.stdout(formatTable([["PROJECT", "VNID"], ...found.map(([key, vnid]) => [key, String(vnid)])]));
      return exitStatus.done;
    }),
});

export const joinTenants = defineCommand({
  action: "join the projects",
  about: "Gives PROJECT the VNID of another one, so that the pods of both reach each other.",
  operands: [project, { name: "OTHER", help: "the project whose VNID it gets" }],
  options,
  run: ({ options, operands: [name = "", join = ""] }, io) => assign("join the projects", name, { join }, options, io),
});

export const globalTenant = defineCommand({
  action: "make the project global",
  about: "Gives PROJECT the VNID 0: its pods reach all others, and are reached by them.",
  operands: [project],
  options,
  run: ({ options, operands: [name = ""] }, io) => assign("make the project global", name, "global", options, io),
});

export const isolateTenant = defineCommand({
  action: "isolate the project",
  about: "Gives PROJECT a VNID of its own again.",
  operands: [project],
  options,
  run: ({ options, operands: [name = ""] }, io) => assign("isolate the project", name, "own", options, io),
});

function assign(
  action: string,
  name: string,
  to: Parameters<TenantRegistry["assign"]>[1],
  options: { readonly config: string | undefined; readonly json: boolean },
  io: TerminalIo,
): Promise<number> {
  return withTenants(options, action, io, async (tenants) => {
    for (const given of typeof to === "string" ? [name] : [name, to.join])
      if (!isProjectName(given))
        return fail(io, action, `the project is "${given}"`, projectNameRule, exitStatus.wrongArguments);
    const vnid = await tenants.assign(name, to);
    if (options.json) io.stdout(formatJson({ project: name, vnid }));
    else io.stdout(`${printable(name)} has VNID ${vnid}\n`);
    return exitStatus.done;
  });
}

function withTenants(
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

async function firstList(tenants: TenantRegistry, registry: string): Promise<ReadonlyMap<string, number>> {
  await using followed = tenants.follow();
  const { promise, resolve, reject } = Promise.withResolvers<ReadonlyMap<string, number>>();
  const late = new CniError(
    CniCode.tryAgainLater,
    `Cannot list the tenants: ${registry} has told none within ${listMs} ms, wanted an answer`,
  );
  const timer = setTimeout(() => reject(late), listMs);
  using _ = followed.subscribe(resolve);
  return await promise.finally(() => clearTimeout(timer));
}

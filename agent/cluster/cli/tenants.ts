import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { tenantsByAgent } from "../ask-agent.ts";
import { listTenants as listing } from "../listing.ts";
import { isProjectName, projectNameRule, type TenantRegistry } from "../node-registry.ts";
import { askRegistry, configOption, fail, jsonOption, keepsNone, withTenants } from "./with-registry.ts";

const options = { config: configOption, json: jsonOption };
const project = { name: "PROJECT", help: "a namespace of Kubernetes" };

const action = "list the tenants";

export const listTenants = defineCommand({
  action,
  about: `Shows every project that has a VNID. Pods reach those of projects with the same VNID; those of VNID 0 reach all, and
are reached by all. What projects share and no person has confirmed no node takes that does not know it so already.`,
  options,
  run: (line, io) =>
    askRegistry(line.options, action, io, { byAgent: tenantsByAgent, itself: listing }, ({ name, tenants: found }) => {
      if (found === undefined) return keepsNone(io, action, name);
      const wanting = found.filter(({ isShared, isConfirmed }) => isShared && !isConfirmed);
      const unconfirmed = new Set(wanting.map(({ project }) => project));
      if (line.options.json) {
        const vnids = Object.fromEntries(found.map(({ project, vnid }) => [project, vnid]));
        io.stdout(formatJson({ registry: name, tenants: vnids, unconfirmed: [...unconfirmed] }));
      } else if (found.length === 0) io.stdout(`No tenants in ${name}\n`);
      else {
        const note = (project: string): string[] =>
          unconfirmed.size === 0 ? [] : [unconfirmed.has(project) ? "not confirmed" : "-"];
        const rows = found.map(({ project, vnid }) => [project, String(vnid), ...note(project)]);
        io.stdout(formatTable([["PROJECT", "VNID", ...(unconfirmed.size === 0 ? [] : ["SHARED"])], ...rows]));
      }
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

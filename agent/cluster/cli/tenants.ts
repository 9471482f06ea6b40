import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { formatTable } from "../../../shared/terminal/table.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { tenantsByAgent } from "../ask-agent.ts";
import { listedTenants, listTenants as listing } from "../listing.ts";
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

const confirmAction = "confirm the project's VNID";

export const confirmTenant = defineCommand({
  action: confirmAction,
  about: `Says that PROJECT is meant to have VNID, as the registry has it now, together with the projects that have it too: nodes
take a changed number, and one that projects share, from people only. "join", "global" and "isolate" confirm what they do; this is for numbers of an earlier release,
and for what somebody wrote by other means. --all confirms every number as the registry has it: look
at "pipette tenants list" first.`,
  operands: [
    { name: "PROJECT", help: "a namespace of Kubernetes", optional: true },
    { name: "VNID", help: "its number in the registry", optional: true },
  ],
  options: { all: { help: "every one that is shared and not confirmed" }, config: configOption, json: jsonOption },
  exits: { 1: "failed: the registry does not answer, or has another number by now" },
  run: ({ options, operands: [project, number] }, io) =>
    withTenants(options, confirmAction, io, async (tenants, registry) => {
      if (options.all === (project !== undefined))
        return fail(
          io,
          confirmAction,
          "PROJECT or --all is missing, or both are there",
          "one",
          exitStatus.wrongArguments,
        );
      if (project !== undefined && !isProjectName(project))
        return fail(io, confirmAction, `the project is "${project}"`, projectNameRule, exitStatus.wrongArguments);
      const vnid = /^\d{1,8}$/.test(number ?? "") ? Number(number) : undefined;
      if (project !== undefined && vnid === undefined)
        return fail(io, confirmAction, `the VNID is "${number ?? ""}"`, "a number", exitStatus.wrongArguments);
      const { confirm } = tenants;
      if (confirm === undefined)
        return fail(io, confirmAction, `${registry} is written by people`, "a registry in etcd");
      const wanted =
        project !== undefined && vnid !== undefined
          ? [{ project, vnid }]
          : (await listedTenants(tenants, registry)).filter(({ isConfirmed }) => !isConfirmed);
      for (const each of wanted) await confirm.call(tenants, each.project, each.vnid);
      const confirmed = Object.fromEntries(wanted.map((each) => [each.project, each.vnid]));
      if (options.json) io.stdout(formatJson({ confirmed }));
      else if (wanted.length === 0) io.stdout("Nothing was to be confirmed\n");
      else for (const each of wanted) io.stdout(`${printable(each.project)} has VNID ${each.vnid}, confirmed\n`);
      return exitStatus.done;
    }),
});

import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import { listedTenants } from "../listing.ts";
import { isProjectName, projectNameRule } from "../node-registry.ts";
import { configOption, fail, jsonOption, withTenants } from "./with-registry.ts";

const action = "confirm the project's VNID";

export const confirmTenant = defineCommand({
  action,
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
    withTenants(options, action, io, async (tenants, registry) => {
      if (options.all === (project !== undefined))
        return fail(io, action, "PROJECT or --all is missing, or both are there", "one", exitStatus.wrongArguments);
      if (project !== undefined && !isProjectName(project))
        return fail(io, action, `the project is "${project}"`, projectNameRule, exitStatus.wrongArguments);
      const vnid = /^\d{1,8}$/.test(number ?? "") ? Number(number) : undefined;
      if (project !== undefined && vnid === undefined)
        return fail(io, action, `the VNID is "${number ?? ""}"`, "a number", exitStatus.wrongArguments);
      const { confirm } = tenants;
      if (confirm === undefined) return fail(io, action, `${registry} is written by people`, "a registry in etcd");
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

import { CniCode, CniError } from "../../../shared/errors.ts";
import type { NetworkPolicy } from "../../../shared/policy/mod.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { defineCommand, type OptionSpec } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printableLines } from "../../../shared/terminal/printable.ts";
import type { TerminalIo } from "../../../shared/terminal/terminal-io.ts";
import { askCluster, cannotTell, clusterOptions, refuse } from "./ask-cluster.ts";
import { readCluster } from "./cluster-view.ts";
import { maxFileBytes, type PolicyFile, readPolicyFile } from "./policy-files.ts";
import { policyName } from "./policy-words.ts";
import { whatIf } from "./what-if.ts";
import { changeLines, totals, whatIfText } from "./what-if-text.ts";

const action = "say what would change";

/** What somebody reads. */
const mostLines = 40;

const options = {
  file: {
    value: "FILE",
    short: "f",
    of: "file",
    repeats: true,
    help: 'NetworkPolicies to be applied, in one or more documents of YAML or JSON ("-": standard input)',
  },
  delete: { value: "NAME", repeats: true, help: "a NetworkPolicy to be deleted: name, or namespace/name" },
  all: { help: `more than ${mostLines} lines` },
  ...clusterOptions,
} as const satisfies Readonly<Record<string, OptionSpec>>;

export const whatIfCommand = defineCommand({
  action,
  about: `Says between which pods something would become possible, or impossible, if these policies were applied or deleted: for
all pods that there are now, on every port that rules tell apart, and for addresses outside of the cluster. Pods
that policies do not tell apart are told together. Changes nothing.`,
  options,
  exits: {
    0: "nothing would change",
    1: "something would",
    2: "cannot tell, or wrong arguments",
    3: "there is no policy of the name that is to be deleted",
  },
  run: ({ options: given }, io) =>
    askCluster(given, action, io, async (cluster) => {
      if (given.file.length + given.delete.length === 0)
        return refuse(io, action, "nothing is to be changed, wanted -f FILE or --delete NAME", cannotTell);
      const files: PolicyFile[] = [];
      for (const file of given.file) files.push(readPolicyFile(await textOf(file, io), file, cluster.namespace));
      const view = await readCluster(cluster);
      const wanted = changedPolicies(view.policies, files, given.delete, cluster.namespace);
      if ("is" in wanted) return refuse(io, action, wanted.is, exitStatus.notThere);
      const others = files.flatMap((file) => file.others);
      if (others.length > 0) io.stderr(printableLines(`left aside, as no NetworkPolicy: ${others.join(", ")}\n`));
      const result = whatIf(view, view.withPolicies(wanted.policies), (done, total) =>
        cluster.progress("groups of pods compared", done, total),
      );
      const lines = changeLines(result);
      if (given.json)
        io.stdout(formatJson({ policies: wanted.said, pods: view.pods.length, ...totals(lines), changes: lines }));
      else {
        const said = wanted.said.map(({ policy, becomes }) => `${policy}: ${becomes}\n`).join("");
        io.stdout(printableLines(`${said}\n${whatIfText(lines, given.all ? lines.length : mostLines)}`));
      }
      return lines.length === 0 ? exitStatus.done : exitStatus.failed;
    }),
});

async function textOf(file: string, io: TerminalIo): Promise<string> {
  try {
    const bytes =
      file === "-"
        ? await io.stdin()
        : await Bun.file(file)
            .slice(0, maxFileBytes + 1)
            .bytes();
    if (bytes.length > maxFileBytes) throw new Error(`it is longer than ${maxFileBytes} bytes`);
    return new TextDecoder().decode(bytes);
  } catch (caught) {
    throw new CniError(CniCode.invalidConfig, `Cannot read "${file}": ${reasonOf(caught)}`);
  }
}

interface Changed {
  readonly policies: readonly NetworkPolicy[];
  readonly said: readonly { readonly policy: string; readonly becomes: "new" | "changed" | "deleted" | "as it is" }[];
}

/** The later of two of the same name counts, as with kubectl. */
function changedPolicies(
  before: readonly NetworkPolicy[],
  files: readonly PolicyFile[],
  deleted: readonly string[],
  namespace: string,
): Changed | { readonly is: string } {
  const after = new Map(before.map((policy) => [policyName(policy), policy]));
  const said = new Map<string, Changed["said"][number]>();
  for (const text of deleted) {
    const policy = text.includes("/") ? text : `${namespace}/${text}`;
    if (!after.delete(policy)) return { is: `there is no NetworkPolicy "${policy}" to be deleted` };
    said.set(policy, { policy, becomes: "deleted" });
  }
  const known = new Map(before.map((policy) => [policyName(policy), policy]));
  for (const each of files.flatMap(({ policies }) => policies)) {
    const policy = policyName(each);
    const old = known.get(policy);
    const isSame =
      old !== undefined && Bun.deepEquals({ ...old, uid: "", generation: 0 }, { ...each, uid: "", generation: 0 });
    said.set(policy, { policy, becomes: isSame ? "as it is" : old === undefined ? "new" : "changed" });
    after.set(policy, isSame ? old : each);
  }
  return { policies: [...after.values()], said: [...said.values()] };
}

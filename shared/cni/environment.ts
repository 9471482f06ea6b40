import { CniCode, CniError } from "../errors.ts";
import { show } from "../schema/json-fields.ts";
import { containerIdRule, ifnameRule, wrongContainerId, wrongIfname } from "./names.ts";

export const verbs = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION"] as const;
export type Verb = (typeof verbs)[number];

/** The CNI_* variables of one call; what a verb does not need may be empty. */
export interface CniEnvironment {
  readonly command: Verb;
  readonly containerId: string;
  readonly netns: string;
  readonly ifname: string;
  readonly args: string;
  /** CNI_PATH as given; `delegate` splits it. */
  readonly path: string;
}

type Variables = Readonly<Record<string, string | undefined>>;

interface Rule {
  readonly name: string;
  readonly requiredBy: readonly Verb[];
  readonly wrong?: (text: string) => string | undefined;
  readonly wanted?: string;
}

/** Specification 1.1.0, "CNI operations": which verb needs which variable, in the order in which errors name them. */
const rules: readonly Rule[] = [
  { name: "CNI_CONTAINERID", requiredBy: ["ADD", "DEL", "CHECK"], wrong: wrongContainerId, wanted: containerIdRule },
  { name: "CNI_NETNS", requiredBy: ["ADD", "CHECK"] },
  { name: "CNI_IFNAME", requiredBy: ["ADD", "DEL", "CHECK"], wrong: wrongIfname, wanted: ifnameRule },
  { name: "CNI_PATH", requiredBy: ["GC"] },
];

/**
 * Reads the environment. Variables that the verb does not need are not checked: podman fills them
 * with placeholders for VERSION.
 * @throws {CniError} code 4 naming every variable that is missing, or the first that will not do
 */
export function parseEnvironment(env: Variables): CniEnvironment {
  const command = verbs.find((verb) => verb === env["CNI_COMMAND"]);
  if (command === undefined) {
    throw invalid(`CNI_COMMAND is ${show(env["CNI_COMMAND"] ?? "")}, wanted one of ${verbs.join(", ")}`);
  }
  let wrong: CniError | undefined;
  for (const rule of rules) {
    if (!rule.requiredBy.includes(command)) continue;
    const text = env[rule.name] ?? "";
    if (text === "") throw missing(env, command);
    const problem = rule.wrong?.(text);
    if (problem !== undefined) wrong ??= invalid(`${rule.name} is ${problem}, wanted ${rule.wanted}`);
  }
  // Behind all that are missing.
  if (wrong !== undefined) throw wrong;
  return {
    command,
    containerId: env["CNI_CONTAINERID"] ?? "",
    netns: env["CNI_NETNS"] ?? "",
    ifname: env["CNI_IFNAME"] ?? "",
    args: env["CNI_ARGS"] ?? "",
    path: env["CNI_PATH"] ?? "",
  };
}

function missing(env: Variables, command: Verb): CniError {
  const absent = rules.filter((rule) => rule.requiredBy.includes(command) && (env[rule.name] ?? "") === "");
  const names = absent.map((rule) => rule.name).join(", ");
  return invalid(`${names} ${absent.length === 1 ? "is" : "are"} missing, wanted for ${command}`);
}

const invalid = (problem: string): CniError =>
  new CniError(CniCode.invalidEnvironment, `Cannot read the environment: ${problem}`);

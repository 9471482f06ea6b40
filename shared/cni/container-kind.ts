import { CniCode, CniError } from "../errors.ts";
import { show } from "../schema/json-fields.ts";
import { containerIdRule, wrongContainerId } from "./names.ts";

/**
 * What CNI_NETNS makes of a container on Windows, where a pod's network belongs to its sandbox and the pod's other
 * containers join it.
 */
export type ContainerKind =
  /** `namespace`: GUID of its HCN namespace, in lower case; absent under a runtime that makes none (Docker's `none`). */
  | { readonly t: "sandbox"; readonly namespace?: string }
  /** Joins the network of the sandbox `sandboxId`. */
  | { readonly t: "workload"; readonly sandboxId: string };

/** The GUID that some runtimes send on DEL for a namespace that is gone; no namespace has it. */
export const zeroGuid = "00000000-0000-0000-0000-000000000000";

const workloadMark = "container:";
const wanted = `"none", "container:" and the id of a sandbox, or the GUID of an HCN namespace`;

/**
 * Tells the three forms of CNI_NETNS apart. The GUID of zeros is accepted here; each verb decides whether it needs a
 * namespace.
 * @throws {CniError} code 4 naming CNI_NETNS for everything else
 */
export function containerKind(netns: string): ContainerKind {
  if (netns === "none") return { t: "sandbox" };
  if (netns.startsWith(workloadMark)) {
    const sandboxId = netns.slice(workloadMark.length);
    const problem = wrongContainerId(sandboxId);
    if (problem === undefined) return { t: "workload", sandboxId };
    throw wrong(netns, ` with a sandbox id that is ${problem}`, `${workloadMark}ID with ${containerIdRule}`);
  }
  const namespace = netns.toLowerCase();
  if (isGuid(namespace)) return { t: "sandbox", namespace };
  throw wrong(netns, "", wanted);
}

/**
 * As `containerKind` for DEL, which must always be able to finish: what cannot be read, and the empty text that the
 * specification allows there, names no other sandbox, so that the call is about its own container.
 */
export function containerKindLeniently(netns: string): ContainerKind {
  try {
    return containerKind(netns);
  } catch {
    return { t: "sandbox" };
  }
}

/**
 * As `containerKind` for verbs that need a namespace where there is one.
 * @throws {CniError} code 4, also for the GUID of zeros
 */
export function containerKindStrictly(netns: string): ContainerKind {
  const kind = containerKind(netns);
  if (kind.t === "sandbox" && kind.namespace === zeroGuid) throw wrong(netns, ", which no namespace has", wanted);
  return kind;
}

/** The container whose lease a call is about: always the sandbox. */
export const sandboxIdOf = (containerId: string, kind: ContainerKind): string =>
  kind.t === "workload" ? kind.sandboxId : containerId;

function wrong(netns: string, about: string, instead: string): CniError {
  const is = `CNI_NETNS is ${show(netns)}${about}`;
  return new CniError(CniCode.invalidEnvironment, `Cannot read the environment: ${is}, wanted ${instead}`);
}

const isDash = (at: number): boolean => at === 8 || at === 13 || at === 18 || at === 23;

/** In lower case and without braces, as every GUID is written here. */
function isGuid(text: string): boolean {
  if (text.length !== 36) return false;
  for (let i = 0; i < 36; i++) {
    const code = text.charCodeAt(i);
    const isHex = (code >= 48 && code <= 57) || (code >= 97 && code <= 102);
    if (isDash(i) ? code !== 45 : !isHex) return false;
  }
  return true;
}

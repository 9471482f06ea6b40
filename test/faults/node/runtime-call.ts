import { readFileSync } from "node:fs";
import { limits } from "../../../shared/limits.ts";
import type { CniEnded } from "../../support/cni-call.ts";
import type { StressOutcome, StressPod, StressVerb } from "./stress-node.ts";

/** What a runtime makes of the network configuration list that the agent wrote, and of what plugins answer. */

/** The verbs that are about a pod. */
export type PodVerb = "ADD" | "DEL" | "CHECK";

type Json = Readonly<Record<string, unknown>>;

/** The configuration of the list's first plugin, with what the runtime adds for one call (specification 1.1.0, section 3). */
export function configurationFor(list: Json, keys: Json): Json {
  const {
    plugins,
    name,
    cniVersion,
    cniVersions = [cniVersion],
  } = list as {
    plugins: readonly Json[];
    name: string;
    cniVersion: string;
    cniVersions?: readonly string[];
  };
  const { capabilities: _, ...plugin } = plugins[0] ?? {};
  return { ...plugin, name, cniVersion: cniVersions.at(-1) ?? cniVersion, ...keys };
}

/** Where a chain may stand from 0.4.0 on: CHECK and DEL hear what ADD had answered. */
export const previousOf = (verb: PodVerb, pod: StressPod): Json =>
  verb === "ADD" || pod.result === undefined ? {} : { prevResult: pod.result };

/** Only what a runtime must keep: pods whose ADD is under way are among them (specification 1.1.0, "GC"). */
export const validAttachments = (keep: readonly StressPod[]): Json => ({
  "cni.dev/valid-attachments": keep.map(({ containerId, ifname }) => ({ containerID: containerId, ifname })),
});

/** The variables of a call about a pod, as containerd sets them. */
export const podVariables = (verb: PodVerb, pod: StressPod, path: string): Record<string, string> => ({
  CNI_COMMAND: verb,
  CNI_CONTAINERID: pod.containerId,
  CNI_NETNS: pod.netns,
  CNI_IFNAME: pod.ifname,
  CNI_PATH: path,
  CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=stress;K8S_POD_NAME=pod-${pod.containerId.slice(0, 8)}`,
});

/** Reads the list that the agent wrote; one that is gone for a moment stays in force, as in a runtime. */
export class ConfigurationList {
  readonly #path: string;
  #last: Json | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  read(): Json {
    try {
      this.#last = JSON.parse(readFileSync(this.#path, "utf8"));
    } catch (caught) {
      if (this.#last === undefined) throw caught;
    }
    return this.#last ?? {};
  }
}

/** What a call came to. */
export function outcomeOf({ status, stdout, stderr, ms }: CniEnded): StressOutcome {
  if (status === 0) return { t: "ok", ms, result: stdout.trim() === "" ? undefined : JSON.parse(stdout) };
  try {
    const { code, msg } = JSON.parse(stdout);
    if (typeof code === "number" && typeof msg === "string") return { t: "error", ms, code, message: msg };
  } catch {}
  const how = status === null ? "ended by a signal" : `status ${status}, no CNI error: ${stdout}${stderr}`;
  return { t: "died", ms, how };
}

/** Addresses of a result, without prefix lengths. */
export const addressesOf = (result: unknown): readonly string[] =>
  ipsOf(result).map(({ address }) => address.replace(/\/\d+$/, ""));

export const gatewaysOf = (result: unknown): readonly string[] => ipsOf(result).flatMap(({ gateway }) => gateway ?? []);

/** Name of the node's end of a pod's interface. */
export const hostEnd = (result: unknown): string =>
  (result as { interfaces: readonly { readonly name: string }[] }).interfaces[1]?.name ?? "";

const ipsOf = (result: unknown): readonly { readonly address: string; readonly gateway?: string }[] =>
  (result as { ips?: [] } | undefined)?.ips ?? [];

/** Starting a process on a machine that has other work, and reading what it says. */
const processMs = 5_000;

/**
 * What a call may take with this configuration: its wait for the agent, then one for the database, to leave word of
 * what the agent did not do.
 */
export function deadlinesOf(plugin: {
  readonly addTimeoutMs?: number;
  readonly delTimeoutMs?: number;
}): Readonly<Record<StressVerb, number>> {
  const { addTimeoutMs = limits.addTimeoutMs, delTimeoutMs = limits.delTimeoutMs } = plugin;
  const rest = limits.storeLockMs + processMs;
  return {
    ADD: addTimeoutMs + rest,
    CHECK: addTimeoutMs + rest,
    DEL: delTimeoutMs + rest,
    GC: delTimeoutMs + rest,
    STATUS: limits.statusTimeoutMs + rest,
  };
}

import { expect } from "vitest";
import { executables } from "../../conformance/plugin.ts";
import { startCommand } from "../../support/cni-call.ts";
import type { BridgeNode } from "../node/bridge-node.ts";
import {
  addressesOf,
  configurationFor,
  outcomeOf,
  type PodVerb,
  podVariables,
  previousOf,
  validAttachments,
} from "../node/runtime-call.ts";
import type { StressOutcome, StressPod } from "../node/stress-node.ts";

/** A sandbox with its network, as it stands once the runtime's ADD has succeeded. */
export async function addPod(node: BridgeNode, wish: Wish = {}): Promise<StressPod> {
  const pod = await node.makePod();
  await wire(node, pod, wish);
  return pod;
}

/** The ADD alone, also one that is repeated. */
export async function wire(node: BridgeNode, pod: StressPod, wish: Wish = {}): Promise<void> {
  const outcome = await callAs(node, "ADD", pod, wish);
  if (outcome.t !== "ok") throw new Error(`Cannot add a pod: ${JSON.stringify(outcome)}, wanted success`);
  pod.result = outcome.result;
  pod.addresses = addressesOf(outcome.result);
}

/** What a test adds to the kit's own call. */
export interface Wish {
  /** Keys of the configuration, in place of those of the agent's file. */
  readonly conf?: Readonly<Record<string, unknown>>;
  /** CNI_ARGS, in place of the kit's. */
  readonly args?: string;
  /** Further directories of CNI_PATH. */
  readonly path?: string;
}

/** One call of the plugin as the kit makes it, but for what the test wishes. */
export async function callAs(node: BridgeNode, verb: PodVerb, pod: StressPod, wish: Wish = {}): Promise<StressOutcome> {
  const variables = podVariables(verb, pod, [executables, ...(wish.path === undefined ? [] : [wish.path])].join(":"));
  const list = await Bun.file(node.home.conflist).json();
  const conf = configurationFor(list, { ...previousOf(verb, pod), ...wish.conf });
  const env = wish.args === undefined ? variables : { ...variables, CNI_ARGS: wish.args };
  return outcomeOf(
    await startCommand([...node.machine.prefix, `${executables}/pipette`], env, JSON.stringify(conf)).ended,
  );
}

/** A GC that reaches the agent at another socket. */
export async function gcBy(node: BridgeNode, keep: readonly StressPod[], socket: string): Promise<StressOutcome> {
  const list = await Bun.file(node.home.conflist).json();
  const conf = configurationFor(list, { ...validAttachments(keep), socket });
  const command = [...node.machine.prefix, `${executables}/pipette`];
  return outcomeOf(
    await startCommand(command, { CNI_COMMAND: "GC", CNI_PATH: executables }, JSON.stringify(conf)).ended,
  );
}

/** A DEL that must succeed, and then the runtime takes the sandbox away. */
export async function endPod(node: BridgeNode, pod: StressPod): Promise<void> {
  expect(await node.call("DEL", pod)).toMatchObject({ t: "ok" });
  await node.removePod(pod);
}

/** Of each lease of the pod's. */
export async function statesOf(node: BridgeNode, { containerId }: StressPod): Promise<readonly string[]> {
  using store = await node.home.store();
  return store.list().flatMap(({ owner, state }) => (owner.sandboxId === containerId ? [state] : []));
}

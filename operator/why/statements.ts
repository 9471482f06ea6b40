import type { Facts, Statement } from "./facts.ts";
import { podText } from "./facts.ts";

/** Sentences of one kind that count. */
const maxOfKind = 50;

/** What documents say is wrong, as sentences. @param away why the agent could not be asked */
export function statementsIn(facts: Omit<Facts, "statements">, away: readonly string[]): readonly Statement[] {
  return [
    ...fromCalls(facts),
    ...fromRuntime(facts),
    ...fromAgent(facts, away),
    ...fromFindings(facts),
    ...fromLeases(facts),
  ];
}

function fromCalls({ calls }: Omit<Facts, "statements">): readonly Statement[] {
  return calls
    .filter(({ code }) => code !== 0)
    .slice(0, maxOfKind)
    .map(({ verb, code, message = "it failed", beganAtMs, times = 1, failedIn }) => ({
      by: "call" as const,
      from: `the agent, of its ${verb}${failedIn === undefined ? "" : ` in "${failedIn}"`} (code ${code})`,
      text: message,
      atMs: beganAtMs,
      times,
      isOfPod: true,
    }));
}

/** That it gives pods no network. */
function fromRuntime({ runtime }: Omit<Facts, "statements">): readonly Statement[] {
  if (runtime?.network?.isReady !== false) return [];
  const text = runtime.network.message === "" ? "its network is not ready" : runtime.network.message;
  return [{ by: "runtime", from: "the container runtime, of its network", text, isOfPod: false }];
}

function fromAgent({ agent }: Omit<Facts, "statements">, away: readonly string[]): readonly Statement[] {
  const of = (by: "agent" | "problem", from: string, texts: readonly string[]): readonly Statement[] =>
    texts.slice(0, maxOfKind).map((text) => ({ by, from, text, isOfPod: false }));
  if (agent === undefined) return of("agent", "asking the agent", away.slice(0, 1));
  return [
    ...of(
      "problem",
      "the agent's status",
      agent.problems.map(({ message }) => message),
    ),
    ...of("problem", "the agent, of its configuration", agent.configuration),
    ...of(
      "problem",
      "the agent, of its registry",
      agent.registryTroubles.map(({ what, reason }) => `cannot ${what}: ${reason}`),
    ),
    ...of("problem", "the agent", agent.shortcomings),
    ...of("problem", "the agent, of its registry", agent.refusals),
    ...of("problem", "the agent, of network policies", agent.policyDifferences),
  ];
}

/** A finding is of the pod where it names it, its sandbox or its address. */
function fromFindings(facts: Omit<Facts, "statements">): readonly Statement[] {
  const names = namesOf(facts);
  return facts.findings
    .filter(({ severity }) => severity !== "note")
    .map(({ code, what, why, todo }) => ({
      by: "finding" as const,
      from: `the doctor (${code})`,
      text: what,
      code,
      todo,
      isOfPod: names.some((name) => what.includes(name) || why.includes(name)),
    }))
    .toSorted((a, b) => Number(b.isOfPod) - Number(a.isOfPod))
    .slice(0, maxOfKind);
}

function namesOf({ pod, calls, leases, attachments }: Omit<Facts, "statements">): readonly string[] {
  const sandboxes = [...calls, ...leases, ...attachments].map(({ containerId }) => `"${containerId}"`);
  const addresses = leases.map(({ address }) => ` ${address.split("/")[0] ?? ""} `);
  return [...new Set([...sandboxes, ...addresses, ...(pod === undefined ? [] : [podText(pod)])])].filter(
    (name) => name.trim().length > 2,
  );
}

/** A DEL that nobody has finished: it was recorded, and an agent has to come. */
function fromLeases({ leases }: Omit<Facts, "statements">): readonly Statement[] {
  return leases
    .filter(({ state }) => state === "releasing")
    .map(({ address }) => ({
      by: "lease" as const,
      from: "its lease",
      text: `its DEL is recorded and not finished: ${address} is releasing, and the interface stays until an agent removes it`,
      code: "del-unfinished",
      todo: "start the agent: it finishes what is releasing",
      isOfPod: true,
    }));
}

import type { DocumentCall } from "../../shared/documents/mod.ts";
import { evidenceOf, formatStatement } from "./evidence.ts";
import { type Asked, type Facts, podText, type Statement, type Verdict, witnesses } from "./facts.ts";
import { type Symptom, symptomOf } from "./symptoms.ts";

interface Known {
  readonly statement: Statement;
  readonly symptom: Symptom;
}

const none = { evidence: [], todo: [] } as const;

/**
 * Why a pod has no network, or without a pod its node: from what the nearest witness says. Pure: all that was heard is
 * in `facts`.
 */
export function judge(facts: Facts): Verdict {
  return ofPodItself(facts) ?? (isUp(facts) ? ofRunningPod(facts) : ofMissingNetwork(facts));
}

/** Where the pod as such answers the question. */
function ofPodItself({ pod, state, leases, attachments, calls }: Facts): Verdict | undefined {
  if (pod === undefined || state === undefined) return undefined;
  const title = podText(pod);
  if (state === "absent") {
    if (leases.length + attachments.length + calls.length > 0) return undefined;
    return { t: "absent", code: "", cause: `there is no pod ${title}, and no node that was asked knows one`, ...none };
  }
  const told = (code: string, cause: string): Verdict => ({ t: "fine", code, cause, ...none });
  if (state.phase === "Succeeded" || state.phase === "Failed")
    return told("ended", `${title} has ended (${state.phase}), and its network with it`);
  if (state.hostNetwork) return told("host-network", `${title} uses its node's own network, not Pipette's`);
  if (state.node !== undefined) return undefined;
  const why = state.unscheduled;
  return {
    t: "cause",
    code: "not-scheduled",
    cause: `${title} has no network, because the scheduler has found no node for it`,
    evidence: why === undefined ? [] : [`the scheduler: ${why}`],
    todo: ['"kubectl describe pod" shows what it waits for; the network comes after that'],
  };
}

/** The last ADD that is known. */
const lastAdd = ({ calls }: Facts): DocumentCall | undefined => calls.find(({ verb }) => verb === "ADD");

/** Whether it has an interface, and nothing that came later failed. */
function isUp(facts: Facts): boolean {
  if (facts.pod === undefined || facts.attachments.length === 0) return false;
  const add = lastAdd(facts);
  return add === undefined || add.code === 0;
}

/** What is wrong although it has its interface: of the node's troubles only those that name it. */
function ofRunningPod(facts: Facts): Verdict {
  const title = facts.pod === undefined ? "" : podText(facts.pod);
  const at = facts.attachments.flatMap(({ addresses }) => addresses).join(", ");
  const found = current(facts).find(({ by, isOfPod }) => isOfPod && (by === "finding" || by === "lease"));
  if (found !== undefined)
    return {
      t: "cause",
      code: found.code ?? "finding",
      cause: `${title} has an interface (${at}) that does not work as it should: ${found.text}`,
      evidence: evidenceOf(facts, found),
      todo: found.todo === undefined ? [] : [found.todo],
    };
  const ended = ofSandbox(facts);
  if (ended !== undefined) return { t: "cause", ...ended, evidence: evidenceOf(facts, undefined) };
  const [isolation] = facts.isolation;
  if (isolation === undefined)
    return {
      t: "fine",
      code: "",
      cause: `${title} has its network (${at}), and nothing that was asked keeps it from it`,
      evidence: evidenceOf(facts, undefined),
      todo: [
        '"pipette trace POD POD" follows a packet; on a kernel bridge "nft list table bridge pipette-BRIDGE" counts what pods send with addresses that are not theirs',
      ],
    };
  const by = isolation.policies.length === 0 ? "" : ` by ${isolation.policies.join(", ")}`;
  const directions = isolation.directions.join(" and ");
  return {
    t: "cause",
    code: "isolated",
    cause: `${title} has its network (${at}), and network policies isolate it${by}: of its ${directions} only what one of them allows passes`,
    evidence: evidenceOf(facts, undefined),
    todo: [`"pipette policy why SRC ${title} --port PORT" says which rule allows a connection, or comes close`],
  };
}

/** Where the runtime's word of the sandbox is another one than the agent's of its interface. */
function ofSandbox({ pod, runtime, attachments }: Facts): Pick<Verdict, "code" | "cause" | "todo"> | undefined {
  if (pod === undefined || runtime === undefined) return undefined;
  const title = podText(pod);
  const ready = runtime.sandboxes.find(({ isReady }) => isReady);
  if (ready === undefined)
    return {
      code: "sandbox-ended",
      cause: `${title} has an interface, and the runtime has no sandbox of it that runs: its DEL is still to come, or was lost`,
      todo: ['wait for the kubelet to make the next one; "pipette doctor --repair" removes what stays'],
    };
  if (ready.isNetnsThere === false)
    return {
      code: "namespace-gone",
      cause: `${title} has lost its network: the network namespace of its sandbox is gone (${ready.netns ?? ""})`,
      todo: ["delete the pod: the runtime makes a new sandbox with a network of its own", "find out who removed it"],
    };
  if (attachments.some(({ containerId }) => containerId === ready.id)) return undefined;
  return {
    code: "other-sandbox",
    cause: `${title} has no network: the interface is of an earlier sandbox, and the one that runs has none of Pipette's`,
    todo: [
      '"pipette doctor" says whether another plugin\'s configuration comes first',
      "delete the pod: the runtime makes a new sandbox",
    ],
  };
}

/** Those that still count: what failed before the last success is over. */
function current(facts: Facts): readonly Statement[] {
  const { statements } = facts;
  const done = facts.calls.find(({ verb, code }) => verb === "ADD" && code === 0)?.beganAtMs ?? 0;
  const isOver = ({ by, atMs }: Statement): boolean => (by === "call" || by === "event") && (atMs ?? done + 1) <= done;
  const order = (one: Statement): number => (one.isOfPod ? 0 : witnesses.length) + witnesses.indexOf(one.by);
  return statements.filter((one) => !isOver(one)).toSorted((a, b) => order(a) - order(b));
}

function ofMissingNetwork(facts: Facts): Verdict {
  const heard = current(facts);
  const known = heard.flatMap((statement) => {
    const symptom = symptomOf(statement.text);
    return symptom === undefined ? [] : [{ statement, symptom }];
  });
  const nearest = known.find(({ symptom }) => !symptom.isOfAsker);
  const deeper = nearest === undefined ? undefined : known.find((one) => isBehind(one, nearest.symptom));
  const best = deeper ?? nearest;
  const said = heard.find(({ by }) => by !== "log");
  if (best !== undefined && (deeper !== undefined || said === undefined || !isCloser(said, best.statement)))
    return shown(facts, best);
  if (said !== undefined && symptomOf(said.text)?.isOfAsker === undefined)
    return {
      t: "cause",
      code: said.code ?? "said",
      cause: `${titleOf(facts)}: ${said.text}`,
      evidence: evidenceOf(facts, said),
      todo: [said.todo ?? '"pipette doctor" on the node says what disagrees there, and what to do about it'],
    };
  const [asker] = known;
  if (asker !== undefined) return { ...shown(facts, asker), t: "unknown" };
  return nothingHeard(facts);
}

/** Whether what is known is the cause of a symptom that is nearer. */
function isBehind({ symptom, statement }: Known, nearer: Symptom): boolean {
  if (symptom.explains !== undefined) return symptom.explains === nearer.code;
  return nearer.isEffect === true && !(symptom.isEffect || symptom.isOfAsker || statement.by === "call");
}

/** The pod's own witness knows better than the node's, whether or not its sentence is in the table. */
const isCloser = (one: Statement, than: Statement): boolean =>
  one !== than && one.isOfPod && !than.isOfPod && (one.by === "call" || one.by === "finding");

const titleOf = ({ pod, node }: Facts): string =>
  pod === undefined
    ? `pods of ${node === undefined ? "this node" : `node "${node}"`} get no network`
    : `${podText(pod)} has no network`;

const shown = (facts: Facts, known: Known): Verdict => ({
  t: "cause",
  code: known.symptom.code,
  cause: `${titleOf(facts)}: ${known.symptom.cause}`,
  evidence: evidenceOf(facts, known.statement),
  todo: known.symptom.todo,
});

function nothingHeard(facts: Facts): Verdict {
  const { pod, asked, agent, runtime, calls } = facts;
  const failed = asked.filter(({ failure }) => failure !== undefined);
  if (pod === undefined && agent !== undefined)
    return { t: "fine", code: "", cause: `nothing keeps ${nodeText(facts)} from giving pods a network`, ...none };
  if (pod !== undefined && runtime !== undefined && runtime.sandboxes.length > 0 && calls.length > 0) {
    const hasEnded = runtime.sandboxes.every(({ isReady }) => !isReady);
    if (hasEnded)
      return {
        t: "cause",
        code: "sandbox-ended",
        cause: `${podText(pod)} has no network, because its sandbox has ended and its network was taken away`,
        evidence: evidenceOf(facts, undefined),
        todo: ["wait for the kubelet to make the next one; its own log tells why the last one ended"],
      };
  }
  if (pod === undefined || agent === undefined)
    return {
      t: "unknown",
      code: "",
      cause: `nobody who could be asked knows ${pod === undefined ? "the node" : podText(pod)}`,
      evidence: [],
      todo: failed.length === 0 ? [] : ["ask on the pod's node as root, or from anywhere with a kubeconfig"],
    };
  return {
    t: "cause",
    code: "no-call",
    cause: `${podText(pod)} has no network, and the agent of ${nodeText(facts)} has had no call for it since it began`,
    evidence: evidenceOf(facts, undefined),
    todo: [
      "look whether it runs on another node, and at the kubelet and the runtime: they have not asked for its network yet",
      '"pipette doctor" says whether another plugin\'s configuration comes first',
    ],
  };
}

const nodeText = ({ node }: Facts): string => (node === undefined ? "this node" : `node "${node}"`);

/** For a person: one paragraph, what it rests on, what to do, who was asked. */
export function verdictText(verdict: Verdict, facts: Facts): string {
  const { cause, evidence, todo } = verdict;
  const failures = Map.groupBy(
    facts.asked.filter((one) => one.failure !== undefined),
    ({ failure }) => failure,
  );
  const lines = [
    `${cause}.`,
    ...evidence.map((line) => `  ${line}`),
    ...todo.map((line, i) => `${i === 0 ? "do:  " : "     "}${line}`),
    `asked: ${askedText(facts.asked)}`,
    ...[...failures].map(
      ([failure, those]) => `could not be asked: ${those.map(({ source }) => source).join(", ")}: ${failure}`,
    ),
  ];
  return lines.join("\n");
}

/** `the API server of the pod; node, calls, pods by the agent at "…"`: who was asked for several things stands once. */
function askedText(asked: readonly Asked[]): string {
  const answered = asked.filter(({ failure }) => failure === undefined);
  const by = Map.groupBy(answered, ({ source }) => source.split(" by ").slice(1).join(" by "));
  const texts = [...by].map(([who, those]) =>
    who === ""
      ? those.map(({ source }) => source).join(", ")
      : `${those.map(({ source }) => source.split(" by ")[0]).join(", ")} by ${who}`,
  );
  return texts.join("; ") || "nobody";
}

/** For a program. */
export const verdictObject = (verdict: Verdict, facts: Facts): object => ({
  ...(facts.pod === undefined ? {} : { pod: podText(facts.pod) }),
  ...(facts.node === undefined ? {} : { node: facts.node }),
  result: verdict.t,
  code: verdict.code,
  cause: verdict.cause,
  evidence: verdict.evidence,
  todo: verdict.todo,
  statements: facts.statements.map((one) => ({ ...one, text: formatStatement(one, facts.nowMs) })),
  asked: facts.asked,
});

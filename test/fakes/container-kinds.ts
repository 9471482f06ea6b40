import { expect } from "vitest";

/** Where a scenario is played: an agent with its data path, in memory or as an executable. */
export interface KindWorld {
  cni(verb: KindVerb, containerId: string, netns: string): Promise<KindAnswer>;
  /** Ends the agent in whatever way and starts it again. */
  restart(): Promise<void>;
  /** Ids of the sandboxes that have an allocated lease, and of those that have an interface, sorted. */
  state(): Promise<{ readonly leases: readonly string[]; readonly interfaces: readonly string[] }>;
}

export type KindVerb = "ADD" | "CHECK" | "DEL";
export type KindAnswer =
  | { readonly t: "ok"; readonly text: string }
  | { readonly t: "error"; readonly code: number; readonly message: string };

/**
 * One call and what must come of it. `new`: an answer. `again`: byte for byte what the same container got before.
 * `joined`: what its sandbox got, but for the namespace's name. `done`: a DEL. A number: an error of this code.
 */
export interface KindStep {
  readonly verb: KindVerb;
  readonly id: string;
  readonly netns: string;
  readonly is: "new" | "again" | "joined" | "done" | number;
}

export interface Scenario {
  readonly name: string;
  /** Steps within brackets run at once. The sandboxes that stand afterwards follow each. */
  readonly steps: readonly (readonly [steps: KindStep | "restart" | readonly KindStep[], stand: readonly string[]])[];
}

/** Namespaces of the sandboxes `s` and `t`. */
export const guidOf: Readonly<Record<string, string>> = {
  s: "5a5a5a5a-0000-4000-8000-000000000001",
  t: "7b7b7b7b-0000-4000-8000-000000000002",
};

/** `container:` and `none` of a Docker-style runtime, GUIDs of containerd. */
export type Style = "containerd" | "docker";

const malformed = [
  "container:",
  "container: ",
  "container:s:w",
  "container:s s",
  "host:s",
  " ",
  "/run/netns/s",
  "NONE",
];
const zeros = "00000000-0000-0000-0000-000000000000";

/** @param order length of the sequences of calls that all occur: of three, in 127 calls */
export function scenariosOf(style: Style, order = 3): readonly Scenario[] {
  const netns = (sandbox: string): string => (style === "docker" ? "none" : (guidOf[sandbox] ?? ""));
  const add = (id: string, is: KindStep["is"]): KindStep => ({ verb: "ADD", id, netns: netns(id), is });
  const del = (id: string, at = netns(id)): KindStep => ({ verb: "DEL", id, netns: at, is: "done" });
  const join = (id: string, is: KindStep["is"], to = "s"): KindStep => ({
    verb: "ADD",
    id,
    netns: `container:${to}`,
    is,
  });
  const leave = (id: string, of = "s"): KindStep => ({ verb: "DEL", id, netns: `container:${of}`, is: "done" });
  return [
    {
      name: "a pod's life: sandbox, two workloads, each again, then all of them leave, each twice",
      steps: [
        [add("s", "new"), ["s"]],
        [join("w", "joined"), ["s"]],
        [join("x", "joined"), ["s"]],
        [add("s", "again"), ["s"]],
        [join("w", "again"), ["s"]],
        [leave("w"), ["s"]],
        [leave("w"), ["s"]],
        [add("s", "again"), ["s"]],
        [join("x", "again"), ["s"]],
        [leave("x"), ["s"]],
        [del("s"), []],
        [del("s"), []],
        [leave("w"), []],
      ],
    },
    {
      name: "a workload before its sandbox gets nothing and leaves nothing",
      steps: [
        [join("w", 101), []],
        [leave("w"), []],
        [add("s", "new"), ["s"]],
        [join("w", "joined"), ["s"]],
        [del("s"), []],
      ],
    },
    {
      name: "a workload after its sandbox gets nothing, and the next life of the sandbox is whole",
      steps: [
        [add("s", "new"), ["s"]],
        [join("w", "joined"), ["s"]],
        [del("s"), []],
        [join("w", 101), []],
        [join("x", 101), []],
        [add("s", "new"), ["s"]],
        [join("x", "joined"), ["s"]],
        [leave("w"), ["s"]],
        [del("s"), []],
      ],
    },
    {
      name: "what never came can leave",
      steps: [
        [leave("w"), []],
        [del("s"), []],
        [del("s", ""), []],
        [del("s", zeros), []],
      ],
    },
    {
      name: "two workloads at once, and each of them again at once",
      steps: [
        [add("s", "new"), ["s"]],
        [[join("w", "joined"), join("x", "joined")], ["s"]],
        [[join("w", "again"), join("x", "again"), add("s", "again")], ["s"]],
        [[leave("w"), leave("x"), add("s", "again")], ["s"]],
        [[del("s"), leave("w"), leave("x")], []],
      ],
    },
    {
      name: "a sandbox that is asked for three times at once is made once",
      steps: [
        [[add("s", "new"), add("s", "new"), add("s", "new")], ["s"]],
        [add("s", "again"), ["s"]],
        [[del("s"), del("s")], []],
      ],
    },
    {
      name: "two pods keep apart",
      steps: [
        [
          [add("s", "new"), add("t", "new")],
          ["s", "t"],
        ],
        [join("w", "joined", "t"), ["s", "t"]],
        [join("x", "joined", "s"), ["s", "t"]],
        [leave("w", "s"), ["s", "t"]],
        [del("s"), ["t"]],
        [join("w", "joined", "t"), ["t"]],
        [join("x", 101, "s"), ["t"]],
        [del("t"), []],
      ],
    },
    {
      name: "a restart of the agent makes no difference to whoever stands",
      steps: [
        [add("s", "new"), ["s"]],
        ["restart", ["s"]],
        [join("w", "joined"), ["s"]],
        [add("s", "again"), ["s"]],
        ["restart", ["s"]],
        [join("w", "again"), ["s"]],
        [leave("w"), ["s"]],
        ["restart", ["s"]],
        [add("s", "again"), ["s"]],
        [del("s"), []],
        ["restart", []],
        [join("w", 101), []],
      ],
    },
    {
      name: "a DEL without a namespace ends the sandbox",
      steps: [
        [add("s", "new"), ["s"]],
        [join("w", "joined"), ["s"]],
        [del("w", ""), ["s"]],
        [del("s", ""), []],
        [add("t", "new"), ["t"]],
        [del("t", zeros), []],
      ],
    },
    {
      name: "what CNI_NETNS cannot be is refused, and nothing happens",
      steps: [
        ...malformed.map((text) => [{ verb: "ADD", id: "s", netns: text, is: 4 }, []] as const),
        [{ verb: "ADD", id: "s", netns: zeros, is: 4 }, []],
        [add("s", "new"), ["s"]],
        ...malformed.map((text) => [{ verb: "ADD", id: "w", netns: text, is: 4 }, ["s"]] as const),
        [del("s"), []],
      ],
    },
    { name: "every order of calls", steps: everyOrder({ add: add("s", "new"), join, leave, del: del("s") }, order) },
  ];
}

interface Moves {
  readonly add: KindStep;
  readonly del: KindStep;
  join(id: string, is: KindStep["is"]): KindStep;
  leave(id: string): KindStep;
}

/** One walk in which every sequence of `length` of the five moves occurs: a de Bruijn sequence of them. */
function everyOrder({ add, del, join, leave }: Moves, length: number): Scenario["steps"] {
  let stands = false;
  const met = new Set<string>();
  return [...deBruijn(5, length), ...Array(length - 1).fill(0)].map((move) => {
    const step = [add, join("w", "joined"), join("x", "joined"), leave("w"), del][move] ?? del;
    if (step === add || step === del) stands = step === add;
    const is = step.is === "joined" && !stands ? 101 : step === add && met.has("s") ? "again" : step.is;
    if (step === del) met.clear();
    if (step === add) met.add("s");
    return [{ ...step, is }, stands ? ["s"] : []] as const;
  });
}

/** Every word of `length` letters out of `letters` once, the end joined to the beginning (Lyndon words in order). */
function deBruijn(letters: number, length: number): number[] {
  const out: number[] = [];
  let word = [0];
  while (word.length > 0) {
    if (length % word.length === 0) out.push(...word);
    word = Array.from({ length }, (_, i) => word[i % word.length] ?? 0);
    while (word.at(-1) === letters - 1) word.pop();
    const last = word.pop();
    if (last !== undefined) word.push(last + 1);
  }
  return out;
}

/** Plays a scenario and holds every answer, and what stands after each step, against it. */
export async function play(world: KindWorld, scenario: Scenario): Promise<void> {
  const answers = new Map<string, string>();
  for (const [i, [steps, stand]] of scenario.steps.entries()) {
    const what = `step ${i + 1} of "${scenario.name}"`;
    if (steps === "restart") await world.restart();
    else await playAtOnce(world, "verb" in steps ? [steps] : steps, answers, what);
    expect(await world.state(), `what stands after ${what}`).toEqual({ leases: stand, interfaces: stand });
  }
}

async function playAtOnce(
  world: KindWorld,
  steps: readonly KindStep[],
  answers: Map<string, string>,
  what: string,
): Promise<void> {
  const got = await Promise.all(steps.map(({ verb, id, netns }) => world.cni(verb, id, netns)));
  steps.forEach((step, k) => {
    const answer = got[k];
    const where = `${step.verb} of "${step.id}" at "${step.netns}", ${what}`;
    if (typeof step.is === "number") {
      expect(answer, where).toMatchObject({ t: "error", code: step.is });
      return;
    }
    if (answer?.t !== "ok") throw new Error(`${where}: ${JSON.stringify(answer)}`);
    if (step.verb === "ADD") holdAnswer(step, answer.text, answers, where);
    if (step.verb === "DEL") answers.delete(step.id);
  });
}

function holdAnswer(step: KindStep, text: string, answers: Map<string, string>, where: string): void {
  if (step.is === "again") expect(text, where).toBe(answers.get(step.id));
  if (step.is === "joined") {
    const sandbox = step.netns.slice("container:".length);
    expect(withoutNamespace(text), where).toEqual(withoutNamespace(answers.get(sandbox) ?? "{}"));
    expect(namespacesIn(text), where).toEqual([step.netns]);
  }
  if (step.is === "new") expect(namespacesIn(text), where).toEqual([step.netns]);
  answers.set(step.id, text);
}

interface AnyResult {
  readonly interfaces?: readonly { readonly sandbox?: string }[];
}

const withoutNamespace = (text: string): unknown => {
  const result = JSON.parse(text) as AnyResult;
  return { ...result, interfaces: result.interfaces?.map((one) => ({ ...one, sandbox: one.sandbox !== undefined })) };
};

const namespacesIn = (text: string): readonly string[] =>
  ((JSON.parse(text) as AnyResult).interfaces ?? []).flatMap(({ sandbox }) => (sandbox ? [sandbox] : []));

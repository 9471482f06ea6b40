import { PageCommands } from "../../../operator/page/page-commands.ts";
import { parseWish, textOf as textOfTopic } from "../../../operator/page/topics.ts";
import { Refusal } from "../../../shared/access/mod.ts";
import { patched, type Step, stepsBetween } from "../../../ui/stream/patch.ts";
import { EventCutter } from "../../../ui/stream/sse.ts";
import type { Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { pieces } from "./http2.ts";
import { jsonOf, textOf } from "./words.ts";

const words = [
  ...["name", "fields", "preview", "from", "to", "protocol", "port", "policies", "why", "trace", "what-if", "doctor"],
  ...["do", "set", "drop", "rows", "key", "at", "gone", "value", "before", "after", "cluster", "*/pods", "a/flows/x"],
];
const program = { run: async () => ({ stdout: "", stderr: "", failure: "", status: 0 }) };
const isPlain = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What a page asks for to be run is refused, or a line that a shell reads back as its words. */
async function ask(commands: PageCommands, value: unknown): Promise<void> {
  try {
    const { line } = await commands.run(value);
    if (!line.startsWith("pipette ")) throw new Error(`The line is ${line}`);
  } catch (caught) {
    if (!(caught instanceof Refusal) || caught.status < 400 || caught.status >= 500) throw caught;
  }
}

/** Documents change into one another by their steps, and steps of another document are refused. */
function patch(value: unknown): void {
  if (!isPlain(value)) return;
  const { before, after, steps } = value;
  if (isPlain(before) && isPlain(after)) {
    const now = patched(before, stepsBetween(before, after));
    if (JSON.stringify(sorted(now)) !== JSON.stringify(sorted(after))) throw new Error("The steps lead elsewhere");
  }
  // A server's own; the page has read its JSON, and takes only lists of steps.
  if (isPlain(before) && Array.isArray(steps) && steps.every(isStep)) {
    try {
      patched(before, steps);
    } catch (caught) {
      if (!(caught instanceof Error) || !caught.message.startsWith("Cannot apply a change")) throw caught;
    }
  }
}

const sorted = (value: Record<string, unknown>): [string, unknown][] => Object.entries(value).toSorted();

const isStep = (step: unknown): step is Step =>
  isPlain(step) &&
  typeof step["key"] === "string" &&
  (step["do"] === "set" ||
    step["do"] === "drop" ||
    (step["do"] === "rows" &&
      [step["at"], step["gone"]].every((one) => Number.isSafeInteger(one) && Number(one) >= 0) &&
      Array.isArray(step["rows"])));

export const page: Target = {
  name: "page",
  what: "what a page asks of its server, and the stream that it is sent",
  mutators: [jsonMutator(words)],
  dictionary: [...words, "id: 1\n", "data: {}\n\n", ": \n\n"],
  maxBytes: 8 * 1024,
  open: () => {
    const commands = new PageCommands(program, { cluster: ["--context", "c"], node: ["--config", "f"] });
    return {
      run: async (input) => {
        const value = jsonOf(input);
        await ask(commands, value);
        patch(value);
        for (const text of textOf(input).split(",").slice(0, 32)) {
          const wish = parseWish(text);
          if (wish?.t === "node" && Bun.deepEquals(parseWish(textOfTopic(wish)), wish) === false)
            throw new Error("A topic is read as another after it was written");
        }
        const whole = new EventCutter().take(textOf(input));
        const cutter = new EventCutter();
        const decoder = new TextDecoder();
        const cut = [...pieces(input)].flatMap((piece) => cutter.take(decoder.decode(piece, { stream: true })));
        if (!Bun.deepEquals(whole, cut)) throw new Error("A stream in pieces has other events");
      },
    };
  },
};

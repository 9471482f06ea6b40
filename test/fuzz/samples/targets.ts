import type { Target } from "../engine/target.ts";

// For the engine's own tests: readers with one defect each. They count, as the product's sources do.

const text = (input: Uint8Array): string => new TextDecoder().decode(input);

/** Fails for one text alone: by chance nobody finds it, by what each letter of it reaches anybody does. */
function reader(input: Uint8Array): void {
  const [a, b, c, d] = text(input);
  if (a !== "D") return;
  if (b !== "E") return;
  if (c !== "E") return;
  if (d === "P") throw new TypeError("undefined is not an object");
}

function hang(input: Uint8Array): void {
  while (text(input).startsWith("!"));
}

function die(input: Uint8Array): void {
  if (text(input).startsWith("!")) process.exit(3);
}

function pollute(input: Uint8Array): void {
  if (text(input).startsWith("!")) Object.assign(Object.prototype, { polluted: true });
}

const kept: Uint8Array[] = [];

const runs = { reader, hang, die, pollute, leak: () => void kept.push(new Uint8Array(64 * 1024).fill(1)) };

export async function loadTarget(name: string): Promise<Target> {
  const run = runs[name as keyof typeof runs];
  const open = (): { run: typeof run } => ({ run });
  return { name, what: "a sample", mutators: [], dictionary: [], maxBytes: 16, open };
}

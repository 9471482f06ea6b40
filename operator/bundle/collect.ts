import { reasonOf } from "../../shared/reason.ts";
import { limits } from "./limits.ts";

/** One thing that belongs into a bundle. */
export interface Item {
  /** In the bundle: `nodes/a/pods.json`. */
  readonly path: string;
  /**
   * A text, or a document; `undefined`: there is none, and nothing is wrong with that. It may go on after its time;
   * nobody waits for it then.
   * @throws why it cannot be had
   */
  readonly work: (signal: AbortSignal) => Promise<string | object | undefined>;
  readonly withinMs?: number;
  /** Of a longer text the end is kept: of logs, not of dumps. */
  readonly keepsEnd?: boolean;
  /** Whose it is: one node that sends too much takes room from itself, and not from the others. */
  readonly node?: string;
}

export interface Collected {
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[];
  readonly failures: readonly { readonly item: string; readonly reason: string }[];
}

/** What makes a text safe to give away. */
interface Cleaner {
  text(text: string): string;
  json(value: unknown): unknown;
}

/**
 * Does all items, some at a time, each within its own time. One that fails or is late is named, and takes nothing from
 * the others; so does one for which there is no room.
 */
export async function collect(
  items: readonly Item[],
  cleaner: Cleaner,
  told: (done: number, total: number) => void = () => undefined,
  atATime: number = limits.atATime,
): Promise<Collected> {
  const files: { path: string; bytes: Uint8Array }[] = [];
  const failures: { item: string; reason: string }[] = [];
  const waiting = [...items];
  let bytesLeft = limits.bundleBytes;
  const nodes = new Map<string, number>(items.flatMap(({ node }) => (node === undefined ? [] : [[node, 0]])));
  const nodeBytes = Math.max(limits.itemBytes, Math.floor(limits.bundleBytes / Math.max(1, nodes.size)));
  let done = 0;
  const one = async (item: Item): Promise<void> => {
    try {
      const value = await withinTime(item);
      if (value === undefined) return;
      const bytes = cleaned(value, item, cleaner);
      const ofNode = bytes.length + (item.node === undefined ? 0 : (nodes.get(item.node) ?? 0));
      if (item.node !== undefined && ofNode > nodeBytes)
        throw new Error(`it has ${bytes.length} bytes, and of one node there is room for ${nodeBytes} in all`);
      if (item.node !== undefined) nodes.set(item.node, ofNode);
      if (bytes.length > bytesLeft)
        throw new Error(`it has ${bytes.length} bytes, and the bundle has room for ${bytesLeft} more`);
      bytesLeft -= bytes.length;
      files.push({ path: item.path, bytes });
    } catch (caught) {
      failures.push({ item: item.path, reason: cleaner.text(reasonOf(caught)) });
    } finally {
      told(++done, items.length);
    }
  };
  const work = async (): Promise<void> => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await one(item);
  };
  await Promise.all(Array.from({ length: Math.min(atATime, items.length) }, work));
  const byPath =
    <T>(of: (one: T) => string) =>
    (a: T, b: T) =>
      of(a) < of(b) ? -1 : 1;
  return { files: files.toSorted(byPath(({ path }) => path)), failures: failures.toSorted(byPath(({ item }) => item)) };
}

async function withinTime({ work, withinMs = limits.itemMs }: Item): Promise<string | object | undefined> {
  const late = AbortSignal.timeout(withinMs);
  const gone = Promise.withResolvers<never>();
  late.addEventListener("abort", () => gone.reject(new Error(`it was not there after ${withinMs} ms`)), { once: true });
  const working = work(late);
  // Whatever becomes of it later.
  working.catch(() => undefined);
  return await Promise.race([working, gone.promise]);
}

function cleaned(value: string | object, { keepsEnd = false }: Item, cleaner: Cleaner): Uint8Array {
  if (typeof value !== "string") {
    // As an agent sends it: indented, one that an agent may just send would be too large here.
    const bytes = new TextEncoder().encode(`${JSON.stringify(cleaner.json(value))}\n`);
    if (bytes.length > limits.itemBytes)
      throw new Error(`it has ${bytes.length} bytes, wanted at most ${limits.itemBytes}`);
    return bytes;
  }
  const most = limits.itemBytes;
  if (value.length <= most) return new TextEncoder().encode(cleaner.text(value));
  const note = `[${value.length - most} characters were left out here]\n`;
  // With more than is kept: a secret that the cut goes through is seen whole, and is gone before.
  const seen = most + limits.overlapChars;
  const clean = cleaner.text(keepsEnd ? value.slice(-seen) : value.slice(0, seen));
  // At the far end of it a secret may be cut in two, however much was left out of the rest.
  const far = value.length > seen ? limits.overlapChars : 0;
  const part = keepsEnd
    ? note + clean.slice(Math.max(clean.length - most, far))
    : clean.slice(0, Math.max(0, Math.min(most, clean.length - far))) + note;
  return new TextEncoder().encode(part);
}

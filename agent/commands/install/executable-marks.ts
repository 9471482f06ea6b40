/**
 * Stands in every executable of ours, because this file is part of it: so an executable can be told from another
 * program's without running it. Releases know each other by it, so it never changes.
 */
export const mark = "pipette:executable:b9b2a6d0c1f84a6e";

/** What may stand behind a mark. Without it, the mark only says whose program this is. */
const behind = { small: ":small", carried: ":carried:" } as const;
/** Not of base64. */
const end = ".";

/** In base64; the small program has 40 to 60 kB. */
export const longestCarriedBytes = 512 * 1024;

export type Marked =
  | { readonly t: "plain" }
  /** The file is the small program of `forward/`. */
  | { readonly t: "small" }
  /** The file is a whole program, which carries this small one for its own system. */
  | { readonly t: "carried"; readonly program: Uint8Array };

/** What a mark says by the text behind it, of which at most `longestCarriedBytes` count. */
export function readMark(text: Uint8Array): Marked {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  const beginsWith = (words: string): boolean => bytes.subarray(0, words.length).equals(Buffer.from(words));
  if (beginsWith(behind.small)) return { t: "small" };
  const length = bytes.indexOf(end);
  if (!beginsWith(behind.carried) || length < 0) return { t: "plain" };
  const program = Buffer.from(bytes.toString("latin1", behind.carried.length, length), "base64");
  return { t: "carried", program };
}

/** For the compiler (build/bundle.ts): has a whole program carry a small one, which nobody loads and installers read. */
export const carriedMark = (program: Uint8Array): string =>
  `${mark}${behind.carried}${Buffer.from(program).toString("base64")}${end}`;

/** For the compiler (build/forward.ts): what the small program has in it, so that earlier releases replace it too. */
export const smallMark = (): string => mark + behind.small;

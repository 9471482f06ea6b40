/**
 * A mark that every executable of ours contains, because this file is part of it. It identifies our executables without
 * running them, also of other releases, so it never changes.
 */
export const mark = "pipette:executable:b9b2a6d0c1f84a6e";

/** The possible suffixes of a mark. Without one, the mark only says that the program is ours. */
const behind = { small: ":small", carried: ":carried:" } as const;
/** The end of a carried program: a character outside of base64. */
const end = ".";

/** The longest carried program in base64; it has 40 to 60 kB. */
export const longestCarriedBytes = 512 * 1024;

export type Marked =
  | { readonly t: "plain" }
  /** The file is the small program of `forward/`. */
  | { readonly t: "small" }
  /** The file is a whole program, which carries this small one for its own system. */
  | { readonly t: "carried"; readonly program: Uint8Array };

/** Reads what a mark says by the text behind it, of which at most `longestCarriedBytes` count. */
export function readMark(text: Uint8Array): Marked {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength);
  const beginsWith = (words: string): boolean => bytes.subarray(0, words.length).equals(Buffer.from(words));
  if (beginsWith(behind.small)) return { t: "small" };
  const length = bytes.indexOf(end);
  if (!beginsWith(behind.carried) || length < 0) return { t: "plain" };
  const program = Buffer.from(bytes.toString("latin1", behind.carried.length, length), "base64");
  return { t: "carried", program };
}

/** For build/bundle.ts: embeds a small program in a whole one, from which installers read it. */
export const carriedMark = (program: Uint8Array): string =>
  `${mark}${behind.carried}${Buffer.from(program).toString("base64")}${end}`;

/** For build/forward.ts: the mark in the small program, so that earlier releases replace it too. */
export const smallMark = (): string => mark + behind.small;

import { checksum, u16, u32 } from "../../../support/frames/frame.ts";
import type { Hex } from "../parse.ts";
import type { World } from "../world.ts";
import type { Draw } from "./draw.ts";
import { joined, raw } from "./made.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** What every part of the grammar is made with. */
export interface Speech {
  readonly draw: Draw;
  readonly vocabulary: Vocabulary;
  readonly world: World;
  /** At the end of what the frame carries. */
  readonly token: Uint8Array;
}

/** Between whom a packet is. */
export interface Ends {
  readonly family: 4 | 6;
  readonly source: Hex;
  readonly destination: Hex;
}

/** What an IP packet carries. */
export interface Segment {
  readonly protocol: number;
  readonly bytes: Uint8Array;
  readonly words: string;
}

/** With its checksum at `at`, over the pseudo header too; one that the draw gets wrong is wrong. */
export function summed({ draw }: Speech, ends: Ends, protocol: number, segment: Uint8Array, at: number): Uint8Array {
  const made = segment.slice();
  made.set([0, 0], at);
  const around = joined(raw(ends.source), raw(ends.destination), u32(made.length), [0, 0, 0, protocol], made);
  const sum = checksum(around) || 0xffff;
  made.set(u16(draw.errs() && draw.chance(10) ? draw.below(65_536) : sum), at);
  return made;
}

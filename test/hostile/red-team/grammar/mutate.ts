import type { Draw } from "./draw.ts";
import { joined, type Made } from "./made.ts";

type Mutation = (draw: Draw, body: Uint8Array) => Uint8Array;

/** Of the bytes before the token: it has to be found again. */
const mutations: readonly (readonly [string, Mutation])[] = [
  [
    "bits flipped",
    (draw, body) => {
      const made = body.slice();
      for (let flips = 1 + draw.below(4); flips > 0; flips--) {
        const at = draw.below(made.length);
        made[at] = (made[at] ?? 0) ^ (1 << draw.below(8));
      }
      return made;
    },
  ],
  [
    "a byte replaced",
    (draw, body) => {
      const made = body.slice();
      made[draw.below(made.length)] = draw.pick([0, 1, 0x7f, 0x80, 0xff, draw.below(256)]);
      return made;
    },
  ],
  ["cut", (draw, body) => body.subarray(0, 14 + draw.below(Math.max(1, body.length - 14)))],
  ["padded", (draw, body) => joined(body, new Uint8Array(1 + draw.below(64)))],
  [
    "bytes put in",
    (draw, body) => {
      const at = 12 + draw.below(Math.max(1, body.length - 12));
      return joined(body.subarray(0, at), draw.bytes(1 + draw.below(12)), body.subarray(at));
    },
  ],
  [
    "bytes taken out",
    (draw, body) => {
      const at = 12 + draw.below(Math.max(1, body.length - 12));
      return joined(body.subarray(0, at), body.subarray(at + 1 + draw.below(8)));
    },
  ],
];

/** A damaged frame. @param token that it carries, if it does: it stays as it is, at the end */
export function mutated(draw: Draw, { bytes, words }: Made, token: Uint8Array = new Uint8Array()): Made {
  const at = token.length === 0 ? bytes.length : Buffer.from(bytes).lastIndexOf(token);
  const body = bytes.subarray(0, at < 14 ? bytes.length : at);
  const [name, mutate] = draw.pick(mutations);
  const made = mutate(draw, body);
  return { bytes: joined(made.length < 14 ? body : made, token), words: `${words}; ${name}` };
}

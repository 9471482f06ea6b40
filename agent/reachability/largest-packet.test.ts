import { expect, test } from "vitest";
import { type Care, largestPacket } from "./largest-packet.ts";

test.each([64, 65, 700, 1_378, 1_449])("of packets up to %i bytes that is found, by few questions", async (fits) => {
  let asked = 0;
  const passes = async (bytes: number): Promise<boolean> => {
    asked++;
    return bytes <= fits;
  };
  expect(await largestPacket(passes, 64, 1_450)).toBe(fits);
  expect(asked).toBeLessThanOrEqual(12);
});

/** A way on which nothing that is asked quickly comes in time while the questions of these numbers are asked. */
const stalled = (fits: number, numbers: readonly number[]) => {
  let asked = 0;
  return async (bytes: number, care: Care): Promise<boolean> =>
    bytes <= fits && (care === "sure" || !numbers.includes(asked++));
};

test.each(Array.from({ length: 11 }, (_, i) => [i]))(
  "an answer that is late, number %i, changes nothing",
  async (at) => {
    expect(await largestPacket(stalled(1_378, [at]), 64, 1_450)).toBe(1_378);
  },
);

test("two stalls change nothing either, and a packet that comes after all is no narrow way", async () => {
  expect(await largestPacket(stalled(1_378, [0, 12, 13]), 64, 1_450)).toBe(1_378);
  expect(await largestPacket(stalled(9_000, []), 64, 1_450)).toBe(1_450);
});

test("on a way that loses at random it ends, with one that came", async () => {
  const came = new Set([64]);
  let asked = 0;
  const passes = async (bytes: number): Promise<boolean> => {
    if (asked++ % 2 === 0) return false;
    came.add(bytes);
    return true;
  };
  expect(came).toContain(await largestPacket(passes, 64, 1_450));
  expect(asked).toBeLessThan(40);
});

import { expect, test } from "vitest";
import { largestPacket } from "./largest-packet.ts";

test.each([64, 65, 700, 1_378, 1_449])("of packets up to %i bytes that is found, by few questions", async (fits) => {
  let asked = 0;
  const passes = async (bytes: number): Promise<boolean> => {
    asked++;
    return bytes <= fits;
  };
  expect(await largestPacket(passes, 64, 1_450)).toBe(fits);
  expect(asked).toBeLessThanOrEqual(11);
});

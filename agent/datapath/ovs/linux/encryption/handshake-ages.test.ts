import { expect, test } from "vitest";
import { HandshakeAges } from "./handshake-ages.ts";

const dayS = 86_400;
const clockS = 1_800_000_000;
const peer = (publicKey: string, handshakeAt: number) => ({
  ...{ publicKey, handshakeAt, allowed: [], keepaliveSeconds: 25, receivedBytes: 0, sentBytes: 0 },
});
/** Looks at one peer after so many seconds, at that time of the clock. */
const look = (ages: HandshakeAges, steadyS: number, nowS: number, at: number): number =>
  ages.look({ peers: [peer("a", at)] }, nowS * 1_000, steadyS * 1_000);

test("the clock is believed for what was before the first look, and nobody sets it afterwards", () => {
  for (const step of [-dayS, 0, dayS]) {
    const ages = new HandshakeAges();
    look(ages, 100, clockS, clockS - 30);
    expect(ages.of("a", 100_000)).toEqual({ t: "ago", ms: 30_000 });
    look(ages, 160, clockS + 60 + step, clockS - 30);
    expect(ages.of("a", 160_000)).toEqual({ t: "ago", ms: 90_000 });
  }
});

test("what is new since the last look is not older than that, whatever the clock says", () => {
  for (const step of [-dayS, 0, dayS]) {
    const ages = new HandshakeAges();
    look(ages, 100, clockS, clockS - 30);
    // Agreed two seconds before the look, and the clock was set in between.
    expect(look(ages, 105, clockS + 5 + step, clockS + 3)).toBe((clockS + 3) * 1_000);
    const is = ages.of("a", 105_000);
    expect(is).toEqual({ t: "ago", ms: step < 0 ? 0 : step > 0 ? 5_000 : 2_000 });
    expect(look(ages, 110, clockS + 10 + step, clockS + 3)).toBe(0);
    expect(ages.of("a", 110_000)).toEqual({ t: "ago", ms: ("ms" in is ? is.ms : 0) + 5_000 });
  }
});

test("a time that was ahead of the clock at the first look is not known", () => {
  const ages = new HandshakeAges();
  look(ages, 100, clockS, clockS + 600);
  expect(ages.of("a", 250_000)).toEqual({ t: "unknown", ms: 150_000 });
  // The next one is.
  look(ages, 250, clockS + 150, clockS + 149);
  expect(ages.of("a", 250_000)).toEqual({ t: "ago", ms: 1_000 });
});

test("who has never agreed has not, also one that went and came again", () => {
  const ages = new HandshakeAges();
  expect(look(ages, 1, clockS, 0)).toBe(0);
  expect(ages.of("a", 1_000)).toEqual({ t: "never" });
  look(ages, 2, clockS, clockS);
  ages.look({ peers: [peer("b", 0)] }, clockS * 1_000, 3_000);
  look(ages, 4, clockS, 0);
  expect(ages.of("a", 4_000)).toEqual({ t: "never" });
});

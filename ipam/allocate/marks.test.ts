import { expect, test } from "vitest";
import { parseIp } from "../../shared/net/ip.ts";
import type { RangeSet } from "../config/ranges.ts";
import { cursorMark, generationMark, inheritedCursorMark, interfaceMark, networksUsed } from "./marks.ts";

const ip = (text: string) => parseIp(text)!;

test("marks have the names that stores of earlier releases have them under", () => {
  const subnet = { ip: ip("10.1.0.0"), prefix: 24 };
  const gateway = ip("10.1.0.254");
  const set: RangeSet = [{ subnet, start: ip("10.1.0.1"), end: ip("10.1.0.9"), gateway, exclude: [] }];
  const owner = { network: "pods", sandboxId: "box", ifname: "eth0" };
  expect(generationMark).toBe("generation");
  expect(cursorMark("pods", set)).toBe("last pods 10.1.0.1-10.1.0.9");
  expect(inheritedCursorMark("pods", 1)).toBe("last pods #1");
  expect(interfaceMark(owner)).toBe("wired pods box eth0");
});

test("a network was used where one of its addresses was given out or came along, and not where only a wire is noted", () => {
  const names = [
    "generation",
    "last a 10.1.0.1-10.1.0.9",
    "last b #0",
    "host-local c",
    "wired d box eth0",
    "last",
    "last ",
  ];
  expect(networksUsed(names)).toEqual(["a", "b", "c"]);
});

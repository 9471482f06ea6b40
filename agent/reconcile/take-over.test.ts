import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { formatCidr } from "../../shared/net/ip.ts";
import { ownerOf, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { takeNetworksOver } from "./take-over.ts";

test("what host-local leased in the agent's networks is known from the start, with its subnet", async () => {
  using parts = await partsInMemory();
  const directory = `${parts.config.dataDir}/pods`;
  mkdirSync(directory);
  writeFileSync(`${directory}/10.9.0.7`, "a\r\neth0");
  writeFileSync(`${directory}/10.9.0.8`, "");
  await takeNetworksOver(parts);
  expect(parts.allocator.find(ownerOf("a")).map(({ address }) => formatCidr(address))).toEqual(["10.9.0.7/24"]);
  expect(parts.lines.join("")).toContain("2 taken over, 1 unreadable");
});

test("a directory that cannot be taken over is logged, and does not end the start", async () => {
  using parts = await partsInMemory();
  const directory = `${parts.config.dataDir}/pods`;
  mkdirSync(directory);
  symlinkSync("/nowhere", `${directory}/lock`);
  await takeNetworksOver(parts);
  expect(parts.lines.join("")).toContain("Cannot lock host-local's directory");
});

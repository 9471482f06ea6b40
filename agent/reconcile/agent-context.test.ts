import { afterEach, beforeEach, expect, test } from "vitest";
import { type PartsInMemory, partsInMemory } from "../../test/fakes/parts-in-memory.ts";
import { StartingContext } from "./agent-context.ts";

let parts: PartsInMemory;
beforeEach(async () => {
  parts = await partsInMemory();
});
afterEach(() => parts[Symbol.dispose]());

test("an agent that starts has no data path before it is made, and from then on that one, with what the node was given", () => {
  const context = new StartingContext(parts.config, parts.allocator, [], parts.logger);
  expect(() => context.dataPath).toThrow(expect.objectContaining({ code: 11 }));
  expect(context.config).toBe(parts.config);
  const joined = { ...parts.config, networks: [] };
  context.complete(joined, parts.dataPath);
  expect([context.dataPath, context.config]).toEqual([parts.dataPath, joined]);
});

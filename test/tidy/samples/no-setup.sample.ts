import { beforeAll, describe, test } from "vitest";

describe("a group", () => {
  beforeAll(() => {
    throw new Error("no setup today");
  });

  test("waits for it", () => undefined);
});

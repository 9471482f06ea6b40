import { afterAll, beforeAll, inject } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { WinePrefix } from "./prefix.ts";

/** What the tests of a group are given. */
export interface Wine {
  /** A Windows of this test file's own. */
  readonly prefix: WinePrefix;
}

/** A group of tests with a Windows of its own, or one skipped test where Wine or the compiler of our stubs is missing. */
export function describeWine(name: string, body: (wine: Wine) => void): void {
  describeWith(name, ["wine", "mingw"], () => {
    let prefix: WinePrefix | undefined;
    beforeAll(async () => {
      prefix = await WinePrefix.make(inject("wineDirectory"));
    });
    afterAll(async () => {
      await prefix?.[Symbol.asyncDispose]();
    });
    body({
      get prefix() {
        if (prefix === undefined) throw new Error("Cannot use the prefix before the tests begin");
        return prefix;
      },
    });
  });
}

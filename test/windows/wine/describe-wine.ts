import { afterAll, beforeAll, inject } from "vitest";
import { describeWith } from "../../support/requires.ts";
import { Stubs } from "../stubs/stubs.ts";
import { WinePrefix } from "./prefix.ts";

/** What the tests of a group are given. */
export interface Wine {
  /** A Windows of this test file's own. */
  readonly prefix: WinePrefix;
  /** What stands behind HNS, PowerShell, netsh and route in it. */
  readonly stubs: Stubs;
}

/** A group of tests with a Windows of its own, or one skipped test where Wine or the compiler of our stubs is missing. */
export function describeWine(name: string, body: (wine: Wine) => void): void {
  describeWith(name, ["wine", "mingw"], () => {
    const all = new AsyncDisposableStack();
    let made: Wine | undefined;
    beforeAll(async () => {
      const prefix = all.use(await WinePrefix.make(inject("wineDirectory")));
      made = { prefix, stubs: all.use(await Stubs.serve(prefix)) };
    });
    afterAll(() => all.disposeAsync());
    const ready = (): Wine => {
      if (made === undefined) throw new Error("Cannot use Windows before the tests begin");
      return made;
    };
    body({
      get prefix() {
        return ready().prefix;
      },
      get stubs() {
        return ready().stubs;
      },
    });
  });
}

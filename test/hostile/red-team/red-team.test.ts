import { beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../../conformance/plugin.ts";
import { describeWith } from "../../support/requires.ts";
import { seed } from "../../support/seed.ts";
import { Attack } from "./attack.ts";
import { sentences } from "./report.ts";
import { siteNames, sites } from "./sites/index.ts";

/** Of each mode; `npm run red-team` sends as many as one likes. */
const frames = 500;

describeWith("nothing gets through from a pod's root", ["linux", "root", "openvswitch", "nft", "etcd"], () => {
  beforeAll(compileExecutables);

  test.each(siteNames)("%s", async (mode) => {
    await using site = await sites[mode]?.();
    if (site === undefined) throw new Error(`There is no mode "${mode}"`);
    using attack = await Attack.begin(site, seed);
    await attack.run({ frames });
    expect(sentences({ mode, seed, seconds: 0, outcome: attack.outcome })).toEqual([]);
    // It was no dead network, and the attacker's kernel sent nearly all of it.
    expect(attack.outcome.allowed).toBeGreaterThan(frames / 10);
    expect(attack.outcome.refused).toBeLessThan(frames / 10);
  });
});

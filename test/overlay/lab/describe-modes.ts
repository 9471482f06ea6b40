import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileExecutables } from "../../conformance/plugin.ts";
import { describeWith } from "../../support/requires.ts";
import { Lab, type LabOptions } from "./lab.ts";
import type { LabPod } from "./lab-pod.ts";
import { beyond, placesOf } from "./places.ts";
import { answers, type Place, unansweredPings } from "./reach.ts";
import { failedConnections } from "./tcp.ts";
import type { WireKind } from "./wire.ts";

export interface Mode {
  readonly name: string;
  readonly lab: LabOptions;
  /** Bytes, of pods' interfaces. */
  readonly mtu: number;
  /** What is seen between the first node and each other one while their pods talk. */
  readonly wire: readonly (readonly WireKind[])[];
}

/** What has to hold in every way that packets can take between nodes: a pod on each, and everybody with everybody. */
export function describeModes(title: string, modes: readonly Mode[]): void {
  describeWith(title, ["root", "openvswitch", "nft", "etcd"], () => {
    beforeAll(compileExecutables);

    describe.each(modes)("$name", ({ lab: options, mtu, wire }) => {
      let lab: Lab;
      let pods: readonly LabPod[];
      let places: readonly Place[];

      beforeAll(async () => {
        lab = await Lab.start(options);
        pods = await Promise.all(lab.nodes.map((node) => node.addPod("web")));
        places = placesOf(lab);
      });
      afterAll(() => lab?.[Symbol.asyncDispose]());

      test("everybody answers the first ping, and everybody is connected under the right address", async () => {
        const lost = await unansweredPings(places, [...places, beyond(lab)]);
        const isSwitched = options.dataPath !== "bridge";
        expect(lost, lost.length > 0 && isSwitched ? await lab.drops() : "").toEqual([]);
        expect(await failedConnections(places, [...places, beyond(lab)])).toEqual([]);
      });

      test("packets look between the nodes as they should, and fill the link", async () => {
        const [first, ...others] = pods as [LabPod, ...LabPod[]];
        for (const [i, other] of others.entries()) {
          for (const address of other.addresses) {
            // Once more where others had something to say meanwhile, as connections that end have.
            const seen = expect.poll(() =>
              lab.underlay.wire.during(async () => {
                expect(await answers(first.namespace, address, { packetBytes: mtu })).toBe(true);
              }),
            );
            await seen.toEqual(wire[i]);
          }
          const larger = { packetBytes: mtu + 1, seconds: 1 };
          const all = await Promise.all(other.addresses.map((address) => answers(first.namespace, address, larger)));
          expect(all).toEqual([false, false]);
        }
      });
    });
  });
}

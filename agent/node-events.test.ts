import { expect, test } from "vitest";
import type { KubernetesEvents } from "../shared/kubernetes/mod.ts";
import { CallRing } from "./metrics/call-record.ts";
import { tellOfPods } from "./node-events.ts";

type Happening = Parameters<KubernetesEvents["tell"]>[0];

const noAddress = (id: string) =>
  `Cannot allocate an address for "${id}": range set "10.1.0.0/29" of network "pods" has 0 of 5 addresses free, wanted at least 1`;

function setUp() {
  const told: Happening[] = [];
  const ring = new CallRing();
  let now = 0;
  tellOfPods(ring, { tell: (one) => void told.push(one) }, () => now);
  const failed = (name: string, code: number, message: string, verb = "ADD"): void =>
    ring.add({
      ...{ verb, code, message, network: "pods", sandbox: message, ifname: "eth0", beganAtMs: 0, durationMs: 1 },
      ...{ pod: { namespace: "shop", name, uid: `u-${name}` }, phases: [], failedIn: "ipam" as const },
    });
  const passes = (ms: number): void => {
    now += ms;
  };
  return { told, failed, passes };
}

test("a pod without network has an Event with the cause and what to do, one whatever its words are this time", () => {
  const { told, failed } = setUp();
  for (const id of ["s1", "s2", "s3"]) failed("cart", 101, noAddress(id));
  expect(told).toEqual([
    {
      ...{ kind: "Pod", of: { namespace: "shop", name: "cart", uid: "u-cart" }, reason: "NoPodNetwork" },
      sameAs: "pool-exhausted",
      message: expect.stringMatching(
        /^No network: no address .* is free on the node\. What to do: "pipette ipam stats".*; "pipette why shop\/cart" says more$/,
      ),
    },
  ]);
  failed("cart", 999, "the moon is full");
  expect(told[1]).toMatchObject({
    message: 'No network: the moon is full; "pipette why shop/cart" says more',
    sameAs: "999 ipam",
  });
});

test("what passes by itself is told when it does not, and other verbs never", () => {
  const { told, failed } = setUp();
  failed("cart", 11, "Cannot serve: the agent starts");
  failed("cart", 5, "Cannot remove it", "DEL");
  expect(told).toEqual([]);
  failed("cart", 11, "Cannot serve: the agent starts");
  expect(told).toHaveLength(1);
});

test("where every pod fails, a bounded number a minute is told of, and others later", () => {
  const { told, failed, passes } = setUp();
  for (let i = 0; i < 300; i++) failed(`p${i}`, 101, noAddress(`p${i}`));
  expect(told).toHaveLength(20);
  for (let i = 0; i < 300; i++) failed(`p${i}`, 101, noAddress(`p${i}`));
  expect(told).toHaveLength(20);
  passes(61_000);
  failed("p299", 101, noAddress("p299"));
  expect(told.at(-1)?.of.name).toBe("p299");
});

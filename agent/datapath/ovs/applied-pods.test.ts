import { expect, test } from "vitest";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { AppliedPods, type PodOnSwitch } from "./applied-pods.ts";
import type { PipelineContext } from "./pipeline/context.ts";

const context: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 32_769, mac: "02:00:00:00:00:01", addresses: [parseIp("10.1.0.1")!] },
  tunnel: { ofport: 32_768, type: "geneve" },
  nodeAddresses: [parseCidr("192.168.1.5/24")!],
  podSubnets: [parseCidr("10.1.0.0/24")!],
  multitenant: false,
};
const port = (ofport: number, last = 5): PodOnSwitch => ({
  ofport,
  mac: `02:00:00:00:01:0${last}`,
  ips: [parseIp(`10.1.0.${last}`)!],
  vnid: 0,
});
const told = (parts: ReadonlyMap<string, unknown>) =>
  [...parts].map(([key, part]) => `${key} ${part === undefined ? "gone" : "set"}`);

test("a pod is told once, again where it has changed, and gone only if it was told", () => {
  const pods = new AppliedPods();
  expect(told(pods.changed(context, [["a", port(1)]]))).toEqual(["pod/a set"]);
  expect(told(pods.changed(context, [["a", port(1)]]))).toEqual([]);
  expect(told(pods.changed(context, [["a", port(2)]]))).toEqual(["pod/a set"]);
  expect(told(pods.removed(["a", "b"]))).toEqual(["pod/a gone"]);
  expect(told(pods.removed(["a"]))).toEqual([]);
});

test("where ports are numbered anew, whoever has lost its number loses its flows with it", () => {
  const pods = new AppliedPods();
  pods.changed(context, [
    ["a", port(1, 5)],
    ["b", port(2, 6)],
  ]);
  expect(told(pods.changed(context, [["b", port(1, 6)]]))).toEqual(["pod/b set", "pod/a gone"]);
  expect(told(pods.changed(context, [["a", port(2, 5)]]))).toEqual(["pod/a set"]);
});

test("two that change places do so together", () => {
  const pods = new AppliedPods();
  const both = (a: number, b: number) => [["a", port(a, 5)] as const, ["b", port(b, 6)] as const];
  pods.changed(context, both(1, 2));
  expect(told(pods.changed(context, both(2, 1)))).toEqual(["pod/a set", "pod/b set"]);
});

test("all is told again to whom nothing was told, and who has gone meanwhile is told of", () => {
  const pods = new AppliedPods();
  pods.changed(context, [
    ["a", port(1, 5)],
    ["b", port(2, 6)],
    ["c", port(3, 7)],
  ]);
  pods.markDirty();
  expect(told(pods.removed(["b"]))).toEqual(["pod/b gone"]);
  expect(told(pods.changed(context, [["a", port(3, 5)]]))).toEqual(["pod/a set", "pod/c gone"]);
  expect(told(pods.changed(context, [["a", port(3, 5)]]))).toEqual([]);
});

test("what came to nothing is told again, and taken away if its pod goes", () => {
  const pods = new AppliedPods();
  pods.markDirty(pods.changed(context, [["a", port(1)]]));
  expect(told(pods.changed(context, [["a", port(1)]]))).toEqual(["pod/a set"]);
  pods.markDirty(pods.changed(context, [["a", port(2)]]));
  expect(told(pods.removed(["a"]))).toEqual(["pod/a gone"]);
  expect(told(pods.changed(context, []))).toEqual([]);
});

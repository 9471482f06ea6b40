import { afterEach, beforeEach, expect, test } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import {
  type HnsNode,
  hnsNode,
  ip,
  joining,
  namespaceA,
  ownerOf,
  requestFor,
} from "../../../test/fakes/hns/hns-node.ts";
import { type ConnectedPod, type OverlayNode, OvsPolicies, type PodPort } from "../ovs/mod.ts";
import { AdapterWaiter } from "./adapter-waiter.ts";
import { endpointId } from "./endpoint-records.ts";
import { OverlayDataPath } from "./overlay-datapath.ts";

let hns: HnsNode;
let calls: string[];
/** The rows of the switch's database. */
let ports: Map<string, ConnectedPod>;
let come: Set<string>;
let dataPath: OverlayDataPath;

const endpoints = (): number => hns.fake.endpoints.length;

/** The node's part of the overlay with nothing behind it: what is asked of it, and how many endpoints there were then. */
const node: OverlayNode = {
  pods: async () => [...ports.values()],
  start: async (keep) => {
    for (const [port, pod] of ports) if (!keep(pod)) ports.delete(port);
    calls.push("start");
  },
  connectPod: async (pod: PodPort, when) => {
    calls.push(`connect ${pod.type ?? "without device"} ${when} ${endpoints()}`);
    ports.set(pod.port, pod);
  },
  disconnectPod: async ({ sandboxId }) => {
    calls.push(`disconnect ${endpoints()}`);
    for (const [port, pod] of ports) if (pod.owner.sandboxId === sandboxId) ports.delete(port);
  },
  problems: () => [],
  degraded: async () => [],
  measure: () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

const open = (): OverlayDataPath =>
  new OverlayDataPath({
    hns: hns.again(),
    requireSwitch: async () => void calls.push("switch"),
    openNode: () => node,
    policies: new OvsPolicies("unix:/nowhere"),
    services: undefined,
    restoreHost: async () => void calls.push("restore"),
    waiterOn: ({ connectPod }) =>
      new AdapterWaiter({
        started: async (all) => new Set(all.filter((port) => come.has(port))),
        connect: (pod) => connectPod({ ...pod, type: "internal" }, "later"),
        logger: createLogger("error", () => undefined),
        firstLookMs: 1,
      }),
  });

const request = { ...requestFor("a", namespaceA, 5), mac: "02:00:5e:00:00:05" };
const portOf = (): string => [...ports.keys()][0] ?? "";

beforeEach(async () => {
  hns = hnsNode();
  [calls, ports, come] = [[], new Map(), new Set()];
  dataPath = open();
  await dataPath.start();
});
afterEach(async () => {
  await dataPath[Symbol.asyncDispose]();
  await hns[Symbol.asyncDispose]();
});

async function attachStarted(): Promise<void> {
  await dataPath.attach(request);
  come.add(portOf());
  await expect.poll(() => ports.get(portOf())?.type).toBe("internal");
  calls.length = 0;
}

test("an endpoint comes before its port, and goes after it", async () => {
  expect(calls).toEqual(["switch", "start"]);
  await dataPath.attach(request);
  await dataPath.detach(request.owner);
  expect(calls.slice(2)).toEqual(["connect without device later 1", "disconnect 1"]);
  expect([endpoints(), ports.size]).toEqual([0, 0]);
});

test("the same ADD, and those of workload containers, leave a pod that runs as it is", async () => {
  await attachStarted();
  await dataPath.attach(request);
  await dataPath.attach(joining(request, "w"));
  expect(calls).toEqual(["connect internal later 1"]);
});

test("the port of an endpoint that was replaced is made anew, for its adapter is", async () => {
  await attachStarted();
  const document = hns.fake.endpoint(endpointId(ownerOf("a")));
  await dataPath.attach({ ...request, ipam: requestFor("a", namespaceA, 6).ipam });
  expect(document).not.toBe(hns.fake.endpoint(endpointId(ownerOf("a"))));
  expect(ports.get(portOf())?.ips).toEqual([ip("10.9.0.6")]);
  expect(calls.slice(0, 2)).toEqual(["disconnect 1", "connect without device later 1"]);
});

test("the next agent goes on with what stands, and lets go of ports whose endpoint is gone", async () => {
  await dataPath.attach(request);
  const port = portOf();
  ports.set("stray", { ...ports.get(port)!, port: "stray", owner: ownerOf("gone") });
  expect((await dataPath.list()).map(({ hostIfname }) => hostIfname)).toEqual([port, "stray"]);
  await dataPath[Symbol.asyncDispose]();
  dataPath = open();
  await dataPath.start();
  expect([...ports.keys()]).toEqual([port]);
  come.add(port);
  await expect.poll(() => ports.get(port)?.type).toBe("internal");
});

test("a start that mends an HNS network has the gateway's adapter and the routes set up again", async () => {
  calls.length = 0;
  await dataPath.start();
  expect(calls).toEqual(["restore", "start"]);
});

test("CHECK looks for the port too", async () => {
  const result = await dataPath.attach(request);
  await dataPath.check(request.owner, namespaceA, result);
  const pod = ports.get(portOf())!;
  ports.set(pod.port, { ...pod, mac: "02:00:00:00:00:01" });
  await expect(dataPath.check(request.owner, namespaceA, result)).rejects.toThrow('is "02:00:00:00:00:01", wanted');
  ports.clear();
  await expect(dataPath.check(request.owner, namespaceA, result)).rejects.toMatchObject({ code: 103 });
});

test("nothing is attached or detached before the node's part is there", async () => {
  const early = open();
  await expect(early.attach(request)).rejects.toMatchObject({ code: 11 });
  await expect(early.detach(request.owner)).rejects.toMatchObject({ code: 11 });
  expect(endpoints()).toBe(0);
  await early[Symbol.asyncDispose]();
});

import { afterEach, beforeEach, expect, test } from "vitest";
import { PolicyControllerDouble } from "../../test/fakes/policy-controller.ts";
import { eventually } from "../../test/support/eventually.ts";
import { createLogger } from "../log.ts";
import { type Happening, KubernetesEvents } from "./kubernetes-events.ts";
import { ApiClient } from "./mod.ts";

let server: PolicyControllerDouble;
const lines: string[] = [];
beforeEach(async () => {
  server = await PolicyControllerDouble.start();
  lines.length = 0;
});
afterEach(() => server[Symbol.asyncDispose]());

const open = (times?: { againMs: number; refusedMs: number }): KubernetesEvents =>
  new KubernetesEvents({
    node: "n1",
    ...(times === undefined ? {} : { times }),
    connect: () =>
      new ApiClient({
        server: server.url,
        tls: () => Promise.resolve({}),
        credentials: { authorization: () => Promise.resolve(undefined), renew: () => Promise.resolve(false) },
      }),
    logger: createLogger("info", (line) => lines.push(line)),
  });
const of = { namespace: "x", name: "web-1", uid: "u1" };
const happening: Happening = { kind: "Pod", of, reason: "StartedIsolated", message: "It starts isolated" };
const names = () => server.reports.map(({ body }) => (body["metadata"] as { name: string }).name);

test("an event has what kubectl describe shows, and is told once", async () => {
  await using events = open();
  events.tell(happening);
  events.tell(happening);
  await eventually(() => server.reports.length > 0, "the event");
  events.tell(happening);
  events.tell({ ...happening, message: "Something else" });
  await eventually(() => server.reports.length > 1, "the other event");
  expect(server.reports[0]).toMatchObject({
    path: "/api/v1/namespaces/x/events",
    body: {
      apiVersion: "v1",
      kind: "Event",
      metadata: { namespace: "x", name: expect.stringMatching(/^web-1\.[0-9a-f]{16}$/) },
      involvedObject: { apiVersion: "v1", kind: "Pod", ...of },
      ...{ type: "Warning", reason: "StartedIsolated", message: "It starts isolated", count: 1 },
      source: { component: "pipette-agent", host: "n1" },
      firstTimestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/),
    },
  });
  expect(server.reports).toHaveLength(2);
  expect(new Set(names()).size).toBe(2);
});

test("nodes that tell the same give it one name, by which the API server refuses the second", async () => {
  await using one = open();
  await using other = open();
  const policy: Happening = { kind: "NetworkPolicy", of, reason: "NotEnforced", message: "A rule is not understood" };
  one.tell(policy);
  other.tell(policy);
  await eventually(() => server.reports.length === 2, "both");
  expect(new Set(names()).size).toBe(1);
  expect(server.reports[0]?.body["involvedObject"]).toEqual({
    ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
    ...of,
  });
});

test.each([403, 404, 409])("one that is refused with %i is not told again", async (status) => {
  server.refusal = status;
  await using events = open();
  events.tell(happening);
  await eventually(() => server.asked.length + server.authorizations.length > 0, "a request");
  server.refusal = undefined;
  events.tell({ ...happening, message: "Later" });
  await eventually(() => server.reports.some(({ body }) => body["message"] === "Later"), "the next event");
  expect(server.reports.filter(({ body }) => body["message"] === happening.message)).toEqual([]);
});

test("an agent that lacks the right says so once, and again where it was taken away", async () => {
  const warned = () => lines.filter((line) => line.includes("give the agent the right to create events")).length;
  await using events = open();
  server.refusal = 403;
  for (const message of ["1", "2"]) events.tell({ ...happening, message });
  await eventually(() => warned() > 0, "a word");
  server.refusal = undefined;
  events.tell({ ...happening, message: "3" });
  await eventually(() => server.reports.length > 0, "the next event");
  expect([warned(), server.reports.length]).toEqual([1, 1]);
  server.refusal = 403;
  events.tell({ ...happening, message: "4" });
  await eventually(() => warned() > 1, "another word");
});

test.each([403, 404])("one that is refused with %i is told once it may be, and not counted as told", async (status) => {
  server.refusal = status;
  await using events = open({ againMs: 60_000, refusedMs: 30 });
  const refused = () => lines.filter((line) => line.includes('"warn"')).length;
  events.tell(happening);
  await eventually(() => refused() > 0, "a word");
  server.refusal = undefined;
  await eventually(() => {
    events.tell(happening);
    return server.reports.length > 0;
  }, "the event");
  expect([refused(), server.reports.map(({ body }) => body["message"])]).toEqual([1, [happening.message]]);
});

test("what is still so is told again after the API server has forgotten it, and words that differ make no other event", async () => {
  await using events = open({ againMs: 30, refusedMs: 60_000 });
  const counted = { ...happening, sameAs: "pool-exhausted" };
  await eventually(() => {
    events.tell({ ...counted, message: `the ${server.reports.length}th time` });
    return server.reports.length > 1;
  }, "the second");
  expect(new Set(names()).size).toBe(1);
});

test("while the API server is away a bounded number waits, and is told when it is back", async () => {
  server.refusal = 503;
  await using events = open();
  for (let i = 0; i < 300; i++) events.tell({ ...happening, message: `${i}` });
  await eventually(() => lines.some((line) => line.includes("what Kubernetes is told in Events")), "a word");
  server.refusal = undefined;
  await eventually(() => server.reports.length >= 100, "those that have waited");
  expect(server.reports.length).toBe(100);
});

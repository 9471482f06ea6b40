import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiClient, ApiError, type ApiObject, mapIn } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { eventually } from "../../test/support/eventually.ts";
import { StatusLease } from "./status-lease.ts";

const path = "/apis/coordination.k8s.io/v1/namespaces/n/leases/pipette-controller";

/** As the API server has it. */
let lease: ApiObject | undefined;
let version = 0;
let isAway = false;
const stack: StatusLease[] = [];
beforeEach(() => {
  lease = undefined;
  isAway = false;
});
afterEach(async () => {
  for (const each of stack.splice(0)) await each[Symbol.asyncDispose]();
});

const refused = (status: number): ApiError => new ApiError({ action: "ask", is: "it refuses", status });
function put(object: ApiObject): ApiObject {
  if (isAway) throw refused(503);
  const is = mapIn(lease ?? {}, "metadata")["resourceVersion"];
  if (is !== mapIn(object, "metadata")["resourceVersion"]) throw refused(409);
  lease = { ...object, metadata: { ...mapIn(object, "metadata"), resourceVersion: String(++version) } };
  return lease;
}
const client = {
  get: async (asked: { path: string }) => {
    if (isAway) throw refused(503);
    if (lease === undefined || asked.path !== path) throw refused(404);
    return lease;
  },
  create: async (_: unknown, object: ApiObject) => put(object),
  replace: async (_: unknown, object: ApiObject) => put(object),
} as unknown as ApiClient;

function candidate(address: string, durationS = 1, everyMs = 20): StatusLease {
  const logger = createLogger("error", () => undefined);
  const made = new StatusLease({ client, namespace: "n", logger, durationS, everyMs });
  stack.push(made);
  made.stand(address);
  return made;
}
const holds = (of: StatusLease) => () => of.holder.t === "this one";

test("one of several holds it, says where it is reached, and the others know that", async () => {
  const [a, b] = [candidate("192.0.2.1:1"), candidate("192.0.2.2:2")];
  await eventually(() => [a, b].filter((each) => each.holder.t === "this one").length === 1, "a holder");
  const [holder, other] = a.holder.t === "this one" ? [a, b] : [b, a];
  const address = holder === a ? "192.0.2.1:1" : "192.0.2.2:2";
  await eventually(() => other.holder.t === "another", "the other to know");
  expect(other.holder).toMatchObject({ t: "another", address });
  expect(mapIn(lease ?? {}, "spec")).toMatchObject({
    holderIdentity: expect.stringMatching(/^192\.0\.2\.\d:\d_[0-9a-f]{8}$/),
    leaseDurationSeconds: 1,
    leaseTransitions: 1,
    renewTime: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
  });
  // For as long as it is renewed, though that is longer than it lasts.
  await Bun.sleep(1_500);
  expect([holder.holder.t, other.holder.t]).toEqual(["this one", "another"]);
});

test("one that stops leaves it at once; one that is gone without a word loses it when it has not changed for so long", async () => {
  const gone = { holderIdentity: "192.0.2.9:9_0", leaseDurationSeconds: 1, renewTime: "2999-01-01T00:00:00.000000Z" };
  put({ metadata: {}, spec: gone });
  const a = candidate("192.0.2.1:1");
  await eventually(() => a.holder.t === "another", "the one that was there");
  // By our own clock, whatever the other one's says.
  await eventually(holds(a), "the end of the other one's time");
  const told: string[] = [];
  const b = candidate("192.0.2.2:2", 60);
  b.onChanged = () => told.push(b.holder.t);
  await eventually(() => b.holder.t === "another", "the other to know");
  await a[Symbol.asyncDispose]();
  expect([a.holder.t, mapIn(lease ?? {}, "spec")["holderIdentity"]]).toEqual(["nobody known", ""]);
  await eventually(holds(b), "the next one");
  expect(told.at(-1)).toBe("this one");
});

test("a holder that cannot renew it holds it no more once its time is over", async () => {
  const a = candidate("192.0.2.1:1");
  await eventually(holds(a), "the Lease");
  isAway = true;
  await eventually(() => a.holder.t === "nobody known", "the end");
  isAway = false;
  await eventually(holds(a), "the Lease again");
});

test("who does not stand for it takes nothing", async () => {
  const logger = createLogger("error", () => undefined);
  await using quiet = new StatusLease({ client, namespace: "n", logger, everyMs: 5 });
  await Bun.sleep(50);
  expect([lease, quiet.holder]).toEqual([undefined, { t: "nobody known" }]);
});

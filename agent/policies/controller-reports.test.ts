import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { ApiClient } from "../../shared/kubernetes/mod.ts";
import { ApiError } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import type { PodRule, RuleCount } from "../datapath/policies.ts";
import { ControllerReports, type PolicyStatus } from "./controller-reports.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const everyMs = 600_000;

class World {
  statuses: PolicyStatus[] = [];
  counts: RuleCount[] = [];
  isFollowed = true;
  wantsStatuses = true;
  /** What the controller answers in place of taking a report. */
  refusal: Error | undefined;
  readonly told: { readonly path: string; readonly body: Record<string, unknown> }[] = [];
  readonly reports = new ControllerReports({
    node: "n1",
    enforcement: { counts: async () => ({ rules: this.counts }) as never },
    statuses: () => this.statuses,
    // The rules of a policy are called by its uid and a number.
    ruleOf: (id) => (id === "gone" ? undefined : ({ policy: { uid: id.slice(0, -1) } } as PodRule)),
    client: () => (this.isFollowed ? ({ create: this.#create.bind(this) } as unknown as ApiClient) : undefined),
    wantsStatuses: () => this.wantsStatuses,
    logger: createLogger("error", () => undefined),
    everyMs,
  });

  async #create({ path }: { readonly path: string }, body: object): Promise<void> {
    if (this.refusal !== undefined) throw this.refusal;
    this.told.push({ path: path.replace("/apis/controlplane.antrea.io/v1beta2/", ""), body: body as never });
  }

  /** The policies that were told of meanwhile: "p1" for one in force, "p1: why" for another. */
  async toldAfter(act: () => void): Promise<readonly string[]> {
    this.told.length = 0;
    act();
    await vi.advanceTimersByTimeAsync(30_000);
    return this.told.map(({ path, body: { nodes } }) => {
      const [{ message, realizationFailure }] = nodes as [{ message: string; realizationFailure: boolean }];
      return `${decodeURIComponent(path.split("/")[1] ?? "")}${realizationFailure ? `: ${message}` : message}`;
    });
  }

  /** What was said of policies' packets at the next report. */
  async counted(...counts: readonly (readonly [id: string, packets: number])[]): Promise<readonly unknown[]> {
    this.told.length = 0;
    this.counts = counts.map(
      ([id, packets]) => ({ id, packets, bytes: 100 * packets, sessions: 2 * packets }) as RuleCount,
    );
    await vi.advanceTimersByTimeAsync(everyMs);
    return this.told.flatMap(({ body: { networkPolicies } }) =>
      (networkPolicies as { networkPolicy: { uid: string }; trafficStats: Record<string, number> }[]).map(
        ({ networkPolicy: { uid }, trafficStats: { packets, bytes, sessions } }) => [uid, packets, bytes, sessions],
      ),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.reports[Symbol.asyncDispose]();
  }
}

const answering = (status: number): ApiError =>
  new ApiError({ action: "report", is: `the controller answers ${status}`, status });
const well = (uid: string): PolicyStatus => ({ name: { namespace: "x", name: uid, uid }, generation: 1 });

describe("how far policies are in force", () => {
  test("is told once, and again when it changes or another controller is followed", async () => {
    await using world = new World();
    const { reports } = world;
    world.statuses = [well("p/1"), { ...well("p2"), failure: "no room" }];
    expect(await world.toldAfter(() => reports.changed())).toEqual(["p/1", "p2: no room"]);
    expect(world.told[0]).toMatchObject({
      path: "networkpolicies/p%2F1/status",
      body: { kind: "NetworkPolicyStatus", metadata: { name: "p/1" }, nodes: [{ nodeName: "n1", generation: 1 }] },
    });
    expect(await world.toldAfter(() => reports.changed())).toEqual([]);
    world.statuses = [well("p/1"), well("p2")];
    expect(await world.toldAfter(() => reports.changed())).toEqual(["p2"]);
    expect(await world.toldAfter(() => reports.startOver())).toEqual(["p/1", "p2"]);
    // One that comes again is another.
    world.statuses = [well("p/1")];
    expect(await world.toldAfter(() => reports.changed())).toEqual([]);
    world.statuses = [well("p/1"), well("p2")];
    expect(await world.toldAfter(() => reports.changed())).toEqual(["p2"]);
  });

  test("is told to nobody where nobody is followed, or wants to know", async () => {
    await using world = new World();
    world.statuses = [well("p1")];
    world.isFollowed = false;
    expect(await world.toldAfter(() => world.reports.changed())).toEqual([]);
    world.isFollowed = true;
    world.wantsStatuses = false;
    expect(await world.toldAfter(() => world.reports.startOver())).toEqual([]);
    world.wantsStatuses = true;
    expect(await world.toldAfter(() => world.reports.changed())).toEqual(["p1"]);
  });

  test("is told a hundred policies at a time, until all are told", async () => {
    await using world = new World();
    world.statuses = Array.from({ length: 201 }, (_, i) => well(`p${i}`));
    world.reports.changed();
    const seen = new Set<number>();
    for (let step = 0; step < 300; step++) {
      await vi.advanceTimersByTimeAsync(100);
      seen.add(world.told.length);
    }
    expect([...seen].filter((told) => told > 0)).toEqual([100, 200, 201]);
  });

  test.each([
    ["of a policy that has gone is nobody's concern", answering(404), []],
    ["that is refused is told again", answering(503), ["p1"]],
    ["that did not arrive is told again", new Error("the connection was lost"), ["p1"]],
  ])("%s", async (_name, refusal, again) => {
    await using world = new World();
    world.statuses = [well("p1")];
    world.refusal = refusal;
    expect(await world.toldAfter(() => world.reports.changed())).toEqual([]);
    const accept = (): void => {
      world.refusal = undefined;
    };
    expect(await world.toldAfter(accept)).toEqual(again);
  });
});

describe("what rules let through", () => {
  test("is reported from time to time, of all rules of a policy together, as far as it is new", async () => {
    await using world = new World();
    expect(await world.counted(["pA1", 3], ["pA2", 4], ["pB1", 0], ["gone", 9])).toEqual([["pA", 7, 700, 14]]);
    expect(world.told).toMatchObject([{ path: "nodestatssummaries", body: { metadata: { name: "n1" } } }]);
    expect(await world.counted(["pA1", 3], ["pA2", 4])).toEqual([]);
    // One that went and came again counts from zero.
    expect(await world.counted(["pA1", 5], ["pA2", 1], ["pB1", 2])).toEqual([
      ["pA", 3, 300, 6],
      ["pB", 2, 200, 4],
    ]);
  });

  test("is not reported before its time, and what did not arrive comes with the next report", async () => {
    await using world = new World();
    world.counts = [{ id: "pA1", packets: 3, bytes: 300, sessions: 6 } as RuleCount];
    expect(await world.toldAfter(() => world.reports.changed())).toEqual([]);
    world.refusal = new Error("the connection was lost");
    expect(await world.counted(["pA1", 3])).toEqual([]);
    world.refusal = undefined;
    expect(await world.counted(["pA1", 5])).toContainEqual(["pA", 5, 500, 10]);
  });
});

import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ApiClient, type KubernetesEvents } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { staleAnnotation } from "../../shared/proto/control-plane-messages.ts";
import { PolicyControllerDouble } from "../../test/fakes/policy-controller.ts";
import { PolicyEnforcementInMemory } from "../../test/fakes/policy-enforcement.ts";
import { addresses, computed, patched, policy, targets } from "../../test/fakes/policy-events.ts";
import { eventually } from "../../test/support/eventually.ts";
import { ipv4, Protocol, udp } from "../../test/support/frames/frame.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { LoggedVerdicts } from "../datapath/policies.ts";
import { NodePolicies } from "./node-policies.ts";

const owner = (sandboxId: string) => ({ network: "pods", sandboxId, ifname: "eth0" });
const pod = (name: string) => ({ namespace: "x", name, uid: `x/${name}` });
const client = { family: 4, value: 0x0a000001n } as const;

const state = [
  addresses("clients", "y/c 10.0.0.1"),
  targets("servers", "x/a"),
  policy("p1", "servers", [{ groups: ["clients"], ports: ["TCP/80"] }]),
];

let directory: ReturnType<typeof scratchDir>;
let controller: PolicyControllerDouble;
let enforcement: PolicyEnforcementInMemory;
let lines: string[];
let happened: Parameters<KubernetesEvents["tell"]>[0][];
const running: NodePolicies[] = [];

beforeEach(async () => {
  directory = scratchDir();
  controller = await PolicyControllerDouble.start();
  enforcement = new PolicyEnforcementInMemory();
  lines = [];
  happened = [];
});

afterEach(async () => {
  for (const each of running.splice(0)) await each[Symbol.asyncDispose]();
  await controller[Symbol.asyncDispose]();
  directory[Symbol.dispose]();
});

interface Start {
  readonly standing?: readonly string[];
  readonly leased?: readonly string[];
  readonly waitMs?: number;
  readonly log?: LoggedVerdicts;
}

async function start({
  standing = [],
  leased = standing,
  waitMs = 20_000,
  log = "off",
}: Start = {}): Promise<NodePolicies> {
  const { url } = controller;
  const policies = new NodePolicies({
    ...{ node: "n1", dataDir: directory.path, waitMs, enforcement, log },
    events: { tell: (each) => happened.push(each) },
    connect: () =>
      Promise.resolve(
        new ApiClient({
          server: url,
          tls: () => Promise.resolve({}),
          credentials: { authorization: () => Promise.resolve(undefined), renew: () => Promise.resolve(false) },
        }),
      ),
    logger: createLogger("info", (line) => lines.push(line)),
    reportMs: 1500,
    times: { answerMs: 10_000, silenceMs: 300, watchMs: 60_000, retryFirstMs: 10, retryMostMs: 50 },
  });
  running.push(policies);
  await policies.prepare(leased.map((name) => ({ owner: owner(name), pod: pod(name) })));
  await policies.begin([...standing, ...leased].map(owner));
  return policies;
}

async function stop(policies: NodePolicies): Promise<void> {
  running.splice(running.indexOf(policies), 1);
  await policies[Symbol.asyncDispose]();
}

/** Whether the sandbox lets the client in at this port. */
const opens = (sandbox: string, port: number): boolean =>
  enforcement.allows(owner(sandbox), { direction: "ingress", other: client, protocol: "TCP", port });

const logged = (text: string): boolean => lines.some((line) => line.includes(text));

describe("an ADD", () => {
  test("is closed before its interface is made, and answered when the pod is computed and its policies are in force", async () => {
    controller.state = state;
    const policies = await start();
    await policies.admit(owner("a"), pod("a"));
    expect([opens("a", 80), opens("a", 81)]).toEqual([false, false]);
    let isSettled = false;
    const settling = policies.settle(owner("a")).then(() => {
      isSettled = true;
    });
    await eventually(() => controller.watches === 1, "the watch");
    const { promise, resolve } = Promise.withResolvers<void>();
    enforcement.gate = promise;
    controller.tell(computed("x/a"));
    await Bun.sleep(50);
    expect(isSettled).toBe(false);
    resolve();
    await settling;
    expect([opens("a", 80), opens("a", 81)]).toEqual([true, false]);
    // The next one finds all there.
    const changes = enforcement.enforced.length;
    await policies.admit(owner("a"), pod("a"));
    await policies.settle(owner("a"));
    expect(enforcement.enforced).toHaveLength(changes);
    policies.forget(owner("a"));
    await eventually(() => enforcement.inForce.isolated.size === 0, "the end");
    expect(enforcement.inForce.rules.size).toBe(0);
  });

  test("that waits too long starts isolated, says so, and is opened when its policies are known", async () => {
    controller.state = state;
    const policies = await start({ waitMs: 30 });
    await policies.admit(owner("a"), pod("a"));
    await policies.settle(owner("a"));
    expect(opens("a", 80)).toBe(false);
    expect(logged("a pod starts isolated")).toBe(true);
    expect(happened).toEqual([
      {
        ...{ kind: "Pod", of: pod("a"), reason: "StartedIsolated" },
        message: expect.stringMatching(/^It starts isolated: its network policies were not known after 30 ms \(/),
      },
    ]);
    expect(await policies.degraded([owner("a")])).toEqual([
      'Sandbox "a" of "x/a" is isolated: its network policies are not known',
    ]);
    controller.tell(computed("x/a"));
    await eventually(() => opens("a", 80), "what its policies allow");
    expect(await policies.degraded([owner("a")])).toEqual([]);
    await eventually(() => logged("has its network policies now"), "the word of it");
  });

  test("whose packets are refused is in the log of verdicts where that is asked for, by its name", async () => {
    controller.state = [...state, computed("x/a")];
    const policies = await start({ log: "refused" });
    await policies.admit(owner("a"), pod("a"));
    await policies.settle(owner("a"));
    const ends = { from: "10.0.0.9", to: "10.0.0.1" };
    const packet = ipv4(ends, Protocol.udp, udp(ends, { from: 4000, to: 81 }, []));
    enforcement.verdict?.({ direction: "ingress", owner: owner("a"), packet });
    expect(await policies.degraded([])).toEqual([]);
    enforcement.unreported = "the switch has no meters";
    expect(await policies.degraded([])).toEqual([
      "Verdicts of network policies are not logged: the switch has no meters",
    ]);
    await policies[Symbol.asyncDispose]();
    expect(readFileSync(join(directory.path, "policies.log"), "utf8")).toMatch(
      / Ingress Drop <nil> x\/a 10\.0\.0\.9 4000 10\.0\.0\.1 81 UDP 28 <nil> isolated by x\/p1\n$/,
    );
  });

  test("what is not in force as it is to be is told, and why that cannot be known", async () => {
    const policies = await start();
    enforcement.different.push(...Array.from({ length: 30 }, (_, i) => `flow ${i} is missing`));
    expect(await policies.differences()).toEqual([...enforcement.different.slice(0, 20), "… and 10 more like this"]);
    enforcement.away = "Cannot look: the switch is away";
    expect(await policies.differences()).toEqual(["Cannot look: the switch is away"]);
  });

  test("fails where nothing can be closed", async () => {
    const policies = await start();
    enforcement.away = "Cannot change rules: the switch is away";
    await expect(policies.admit(owner("a"), pod("a"))).rejects.toThrow("the switch is away");
  });

  test("many at a time have one change at a time, and few of them", async () => {
    controller.state = [...state, ...Array.from({ length: 40 }, (_, i) => computed(`x/p${i}`))];
    const policies = await start();
    await eventually(() => logged("has told all"), "the full set");
    const before = enforcement.enforced.length;
    const add = async (name: string): Promise<void> => {
      await policies.admit(owner(name), pod(name));
      await policies.settle(owner(name));
    };
    await Promise.all(Array.from({ length: 40 }, (_, i) => add(`p${i}`)));
    expect(enforcement.enforced.length - before).toBeLessThan(5);
  });

  test.each([404, 403])(
    "of a pod that Antrea's controller, which answers %i to our own watch, does not tell of waits a moment",
    async (status) => {
      controller.isAntreas = true;
      controller.elsewhere = status;
      controller.state = state;
      const policies = await start();
      await eventually(() => logged("has told all"), "the full set");
      expect(controller.asked.filter((path) => path.includes("antrea"))).toHaveLength(3);
      expect(controller.asked[1]).toContain("fieldSelector=nodeName%3Dn1&watch=true");
      await policies.admit(owner("a"), pod("a"));
      expect(opens("a", 80)).toBe(false);
      await policies.settle(owner("a"));
      expect([opens("a", 80), opens("a", 81)]).toEqual([true, false]);
    },
  );
});

describe("a controller", () => {
  test.each<[string, () => void]>([
    ["ends", () => controller.endWatches()],
    ["says what is no event", () => controller.send(Uint8Array.of(0, 0, 0, 1, 0xff))],
    ["changes a group that nobody knows", () => controller.tell(patched("AddressGroup", "others", ["y/d 10.0.0.9"]))],
    ["sends a frame beyond all bounds", () => controller.send(Uint8Array.of(0x7f, 0, 0, 0))],
  ])("that %s is asked for everything again, and nothing opens meanwhile", async (_, fail) => {
    controller.state = [...state, computed("x/a")];
    await start({ standing: ["a"] });
    await eventually(() => opens("a", 80), "the policy");
    controller.isComplete = false;
    controller.state = [computed("x/a")];
    fail();
    await eventually(() => controller.asked.length > 1, "another watch");
    await Bun.sleep(50);
    // The half of a set is nothing, however long it takes: another is asked for.
    await eventually(() => controller.asked.length > 2, "a third watch");
    expect([opens("a", 80), opens("a", 81)]).toEqual([true, false]);
    controller.isComplete = true;
    await eventually(() => opens("a", 81), "the state without policies");
  });

  test("that has only what an earlier process knew is listened to by nodes that know nothing", async () => {
    controller.state = [...state, computed("x/a")];
    controller.annotations = { [staleAnnotation]: "true" };
    const policies = await start({ standing: ["a"] });
    await eventually(() => opens("a", 80), "the old policy");
    controller.state = [computed("x/a")];
    controller.endWatches();
    await eventually(() => controller.asked.length > 1 && controller.watches === 1, "the next watch");
    controller.tell(patched("AddressGroup", "clients", ["y/d 10.0.0.9"]));
    await Bun.sleep(50);
    expect([opens("a", 80), opens("a", 81)]).toEqual([true, false]);
    controller.annotations = {};
    controller.endWatches();
    await eventually(() => opens("a", 81), "the computation of now");
    expect(policies.problems()).toEqual([]);
  });
});

describe("a controller is told", () => {
  test("how far each policy is in force, when that changes, and what its rules let through since the last word of it", async () => {
    const strange = policy("p2", "servers", [{ groups: ["clients"], more: { action: "Drop" } }]);
    controller.state = [...state, policy("p3", "servers", [{ blocks: ["10.9.0.0/16"] }]), strange, computed("x/a")];
    const policies = await start({ standing: ["a"] });
    await eventually(() => enforcement.inForce.rules.size === 2, "the rules");
    const statuses = (): unknown[] =>
      controller.reports
        .filter(({ path }) => path.endsWith("/status"))
        .map(({ path, body }) => [path.split("/")[1], (body["nodes"] as unknown[])[0]]);
    await eventually(() => statuses().length === 3, "three statuses");
    const well = { nodeName: "n1", generation: 1, realizationFailure: false, message: "" };
    expect(statuses()).toEqual([
      ["p1", well],
      ["p3", well],
      ["p2", { ...well, realizationFailure: true, message: 'the action of a rule is "Drop"' }],
    ]);
    expect(policies.summary).toMatch(
      /^network policies: 3 with 2 rules, 1 of them refused in part or as a whole; controller last heard \d+ s ago$/,
    );
    const [rule] = enforcement.inForce.rules.values();
    enforcement.cannot.add(rule?.id ?? "");
    enforcement.counted.set(rule?.id ?? "", 7);
    controller.tell(patched("AddressGroup", "clients", ["y/e 10.0.0.5"]));
    await eventually(() => statuses().length === 4, "the refusal");
    expect(statuses().at(-1)).toMatchObject(["p1", { realizationFailure: true, message: "a test says so" }]);
    expect(await policies.degraded([owner("a")])).toContain(
      'A rule of NetworkPolicy "x/p1" is not in force, and what it would allow is closed: a test says so',
    );
    const told = (name: string, failure: string) => ({
      ...{ kind: "NetworkPolicy", reason: "NotEnforced", of: expect.objectContaining({ namespace: "x", name }) },
      message: `Not all of it is in force, and what it would allow is closed: ${failure}`,
    });
    expect(happened).toContainEqual(told("p2", 'the action of a rule is "Drop"'));
    expect(happened).toContainEqual(told("p1", "a test says so"));
    const counts = (): unknown[] =>
      controller.reports.filter(({ path }) => path === "nodestatssummaries").map(({ body }) => body);
    await eventually(() => counts().length === 1, "what was counted");
    enforcement.counted.set(rule?.id ?? "", 9);
    await eventually(() => counts().length === 2, "what was counted since");
    const stats = (packets: number, bytes: number, sessions: number): unknown => ({
      metadata: { name: "n1" },
      networkPolicies: [{ networkPolicy: { uid: "p1" }, trafficStats: { packets, bytes, sessions } }],
    });
    expect(counts()).toMatchObject([stats(7, 700, 1), stats(2, 200, 0)]);
  });
});

describe("an agent that starts without its controller", () => {
  test("enforces what was known, keeps isolated what was, and knows nothing of pods that are new", async () => {
    controller.state = [...state, computed("x/a")];
    const first = await start({ standing: ["a", "b"] });
    await eventually(() => opens("a", 80), "the policy");
    await stop(first);
    const file = join(directory.path, "policies.state");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    controller.refusal = 503;
    enforcement = new PolicyEnforcementInMemory();
    // The leases of another IPAM plugin do not tell the pods.
    const second = await start({ standing: ["a", "b", "c"], leased: [], waitMs: 10 });
    expect([opens("a", 80), opens("a", 81), opens("b", 80), opens("c", 80)]).toEqual([true, false, false, false]);
    expect(enforcement.enforced.every(({ isolated }) => isolated.has("pods\na\neth0"))).toBe(true);
    await second.admit(owner("d"), pod("d"));
    await second.settle(owner("d"));
    expect(opens("d", 80)).toBe(false);
    expect(second.problems()).toEqual([]);
    const [following, ...others] = await second.degraded(["a", "b", "c", "d"].map(owner));
    expect(following).toContain("answers 503");
    expect(others).toHaveLength(3);
    controller.refusal = undefined;
    controller.state = [...state, computed("x/a"), computed("x/b"), computed("x/d")];
    await eventually(() => opens("b", 81) && opens("d", 81), "the controller");
    expect([opens("a", 81), opens("c", 80)]).toEqual([false, false]);
  });

  test.each<[string, (file: string) => void]>([
    ["changed", (file) => writeFileSync(file, readFileSync(file, "utf8").replace(/A/, "B"))],
    ["cut off", (file) => writeFileSync(file, readFileSync(file, "utf8").slice(0, -10))],
    ["empty", (file) => writeFileSync(file, "")],
    ["gone", (file) => rmSync(file)],
  ])("keeps every pod isolated where the file with what was known is %s, and says so", async (what, damage) => {
    controller.state = [computed("x/a")];
    const first = await start({ standing: ["a"] });
    await eventually(() => opens("a", 80), "a pod without policies");
    await stop(first);
    const file = join(directory.path, "policies.state");
    damage(file);
    controller.refusal = 503;
    enforcement = new PolicyEnforcementInMemory();
    const second = await start({ standing: ["a"] });
    expect(opens("a", 80)).toBe(false);
    expect(logged("is of no use")).toBe(what !== "gone");
    expect(second.problems()).toMatchObject([{ code: 50 }]);
    controller.refusal = undefined;
    await eventually(() => opens("a", 80), "the controller");
    expect(second.problems()).toEqual([]);
  });

  test("is told to the data path before it starts, where that can take it", async () => {
    controller.state = [computed("x/a")];
    enforcement.away = "not yet";
    const policies = new NodePolicies({
      ...{ node: "n1", dataDir: directory.path, waitMs: 10, enforcement },
      connect: () => Promise.reject(new Error("nobody is there")),
      logger: createLogger("info", (line) => lines.push(line)),
    });
    running.push(policies);
    await policies.prepare([{ owner: owner("a"), pod: pod("a") }]);
    expect(logged("with the data path's start")).toBe(true);
    await expect(policies.begin([owner("a")])).rejects.toThrow("not yet");
    enforcement.away = undefined;
    await eventually(() => enforcement.inForce.isolated.size === 1, "the isolation");
  });
});

import { expect, test } from "vitest";
import { LiveValue } from "../../../../shared/async/live-value.ts";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { createLogger } from "../../../../shared/log.ts";
import { parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { eventually } from "../../../../test/support/eventually.ts";
import type { FlowSet, SwitchProgram } from "../program/flow-set.ts";
import type { Service, ServiceSource } from "./service.ts";
import { ServiceReconciler } from "./service-reconciler.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;

function service(key: string, address: string, endpoints: readonly string[] = ["10.10.1.2"]): Service {
  return {
    key,
    clusterIp: ip(address),
    protocol: "tcp",
    port: 80,
    endpoints: endpoints.map((text) => ({ ip: ip(text), port: 8080, weight: 100 })),
  };
}

/** Stands for the switch's program: takes its time, refuses what it is told to, and has what it took. */
class ScriptedProgram implements SwitchProgram {
  readonly round = 1;
  readonly parts = new Map<string, FlowSet>();
  readonly calls: (readonly string[])[] = [];
  refuses: (parts: ReadonlyMap<string, FlowSet | undefined>) => CniError | undefined = () => undefined;
  /** As while the switch is away: a call fails with 11, and what it sets is kept. */
  isAway = false;
  /** What the next calls wait for. */
  held: Promise<void> | undefined;

  async set(parts: ReadonlyMap<string, FlowSet | undefined>): Promise<void> {
    this.calls.push([...parts.keys()]);
    await this.held;
    const refusal = this.refuses(parts);
    if (refusal !== undefined) throw refusal;
    for (const [key, part] of parts) {
      if (part === undefined) this.parts.delete(key);
      else this.parts.set(key, part);
    }
    if (this.isAway) throw new CniError(CniCode.tryAgainLater, "Cannot reach the switch: it is away");
  }

  get services(): readonly string[] {
    return [...this.parts.keys()].filter((key) => key.startsWith("service/")).sort();
  }

  get hairpins(): readonly string[] {
    return [...this.parts.keys()].filter((key) => key.startsWith("service-hairpin/")).sort();
  }
}

function keeping() {
  const program = new ScriptedProgram();
  const services = new LiveValue<ReadonlyMap<string, Service>>();
  const log: string[] = [];
  const source: ServiceSource = {
    current: undefined,
    subscribe: (listener) => services.subscribe(listener),
    [Symbol.asyncDispose]: async () => undefined,
  };
  const reconciler = new ServiceReconciler({
    source,
    program,
    context: { podSubnets: [cidr("10.10.1.0/24")] },
    cidrs: [cidr("10.96.0.0/16")],
    management: "unix:/nowhere/br-int.mgmt",
    logger: createLogger("info", (line) => void log.push(line)),
  });
  const say = (...all: readonly Service[]): void => services.set(new Map(all.map((one) => [one.key, one])));
  const have = async (...all: readonly Service[]): Promise<void> => {
    say(...all);
    await Bun.sleep(0);
    await reconciler.synced();
  };
  return { program, reconciler, log, say, have };
}

test("what comes while the switch is busy comes together, and the same again not at all", async () => {
  const { program, reconciler, say, have } = keeping();
  await using _ = reconciler;
  const gate = Promise.withResolvers<void>();
  program.held = gate.promise;
  say(service("a", "10.96.0.1"));
  await Bun.sleep(0);
  for (let i = 0; i < 50; i++) say(service("a", "10.96.0.1"), service(`b${i}`, "10.96.0.2"));
  await Bun.sleep(0);
  gate.resolve();
  await reconciler.synced();
  expect(program.services).toEqual(["service/a", "service/b49"]);
  expect(program.calls.length).toBeLessThanOrEqual(3);
  const before = program.calls.length;
  await have(service("b49", "10.96.0.2"), service("a", "10.96.0.1"));
  expect(program.calls).toHaveLength(before);
});

test("endpoints in another order are no change; one more, or another weight, is one of that service alone", async () => {
  const { program, reconciler, have } = keeping();
  await using _ = reconciler;
  const other = service("b", "10.96.0.2");
  await have(service("a", "10.96.0.1", ["10.10.1.2", "10.10.1.3"]), other);
  const before = program.calls.length;
  await have(service("a", "10.96.0.1", ["10.10.1.3", "10.10.1.2"]), other);
  expect(program.calls).toHaveLength(before);
  await have(service("a", "10.96.0.1", ["10.10.1.3", "10.10.1.2", "10.10.2.2"]), other);
  expect(program.calls.slice(before)).toEqual([["service/a"]]);
});

test("own endpoints have their way to themselves as long as any service has them", async () => {
  const { program, reconciler, have } = keeping();
  await using _ = reconciler;
  const [a, b] = [service("a", "10.96.0.1", ["10.10.1.2", "10.10.2.2"]), service("b", "10.96.0.2")];
  await have(a, b);
  expect(program.hairpins).toEqual(["service-hairpin/10.10.1.2"]);
  await have(b);
  expect(program.hairpins).toEqual(["service-hairpin/10.10.1.2"]);
  await have({ ...b, endpoints: [] });
  expect(program.hairpins).toEqual([]);
  await have({ ...a, clusterIp: ip("10.96.0.9") });
  await have({ ...a, clusterIp: ip("10.96.0.8") });
  expect(program.hairpins).toEqual(["service-hairpin/10.10.1.2"]);
  await have();
  expect([program.services, program.hairpins]).toEqual([[], []]);
});

test("a service that gets another address keeps its number, so that no other gets its group", async () => {
  const { program, reconciler, have } = keeping();
  await using _ = reconciler;
  const numberOf = (key: string) => program.parts.get(`service/${key}`)?.groups?.[0]?.id;
  // Their keys have one hash.
  await have(service("costarring", "10.96.0.1"));
  const number = numberOf("costarring");
  await have(service("costarring", "10.96.0.2"));
  await have(service("costarring", "10.96.0.2"), service("liquid", "10.96.0.3"));
  expect([numberOf("costarring"), numberOf("liquid")]).toEqual([number, (number ?? 0) + 1]);
});

test("many services go in in bundles of a bounded size, and may change places over all of them", {
  timeout: 60_000,
}, async () => {
  const { program, reconciler, log, have } = keeping();
  await using _ = reconciler;
  const endpoints = Array.from({ length: 10 }, (_, i) => `10.10.${i}.2`);
  const address = (i: number) => `10.96.${4 + (i >> 8)}.${i & 255}`;
  const all = Array.from({ length: 700 }, (_, i) => service(`s${i}`, address(i), endpoints));
  await have(...all);
  expect(program.services).toHaveLength(700);
  expect(program.calls.length).toBeGreaterThan(2);
  expect(Math.max(...program.calls.map((keys) => keys.length))).toBeLessThan(500);
  // Two services with one address in the same moment would be refused.
  program.refuses = (parts) => {
    const after = new Map([...program.parts, ...parts]);
    const met = [...after].flatMap(([key, part]) => (key.startsWith("service/") && part ? (part.flows[0] ?? []) : []));
    const places = new Set(met.map(({ match }) => match.fields.find(({ field }) => field.name === "ip_dst")?.value));
    return places.size < met.length ? new CniError(CniCode.interfaceFailure, "Cannot: two in one place") : undefined;
  };
  await have(...all.map((one, i) => ({ ...one, clusterIp: all.at(-1 - i)!.clusterIp })));
  expect([program.services.length, log]).toEqual([700, []]);
});

test("a service that the switch refuses costs the others nothing, and is told of", async () => {
  const { program, reconciler, log, have } = keeping();
  await using _ = reconciler;
  program.refuses = (parts) =>
    parts.has("service/s5") ? new CniError(CniCode.interfaceFailure, "Cannot put it in: it is bad") : undefined;
  const all = Array.from({ length: 20 }, (_, i) => service(`s${i}`, `10.96.0.${i + 1}`));
  await have(...all);
  expect(program.services).toHaveLength(19);
  expect(log).toHaveLength(1);
  expect(log[0]).toContain('"what":"service \\"s5\\""');
  program.refuses = () => undefined;
  await have(...all, service("more", "10.96.0.100"));
  expect(program.services).toHaveLength(21);
});

test("while the switch is away it is asked again, and nobody is told of it", async () => {
  const { program, reconciler, log, have } = keeping();
  await using _ = reconciler;
  let times = 0;
  program.refuses = () =>
    ++times <= 2 ? new CniError(CniCode.tryAgainLater, "Cannot reach the switch: it is away") : undefined;
  await have(service("a", "10.96.0.1"));
  expect(program.services).toEqual([]);
  await eventually(() => program.services.length === 1, "the service");
  expect([times, log]).toEqual([4, []]);
});

test("what comes and goes again while the switch is away is not left in it", async () => {
  const { program, reconciler, have } = keeping();
  await using _ = reconciler;
  const [a, b] = [service("a", "10.96.0.1", ["10.10.1.2"]), service("b", "10.96.0.2", ["10.10.1.3"])];
  await have(a);
  const first = program.parts.get("service/a");
  program.isAway = true;
  await have(a, b);
  expect(program.services).toEqual(["service/a", "service/b"]);
  await have(service("a", "10.96.0.1", ["10.10.1.9"]));
  await have(a);
  program.isAway = false;
  await have(a);
  expect([program.services, program.hairpins]).toEqual([["service/a"], ["service-hairpin/10.10.1.2"]]);
  expect(program.parts.get("service/a")).toEqual(first);
  const calls = program.calls.length;
  await have(a);
  expect(program.calls).toHaveLength(calls);
});

test("a source that says what no switch can have costs the others nothing", async () => {
  const { program, reconciler, log, have } = keeping();
  await using _ = reconciler;
  await have(service("a", "10.96.0.1"), { ...service("b", "10.96.0.2"), port: 70_000 });
  expect(program.services).toEqual(["service/a"]);
  expect(log.join()).toContain("0x11170 is too large, wanted 16 bits");
});

test("the agent's start waits for a switch that is slow, and not for a source that says nothing", async () => {
  const silent = keeping();
  await using _ = silent.reconciler;
  await silent.reconciler.initialSync();
  const { program, reconciler, say } = keeping();
  await using _other = reconciler;
  program.held = Bun.sleep(100);
  say(service("a", "10.96.0.1"));
  await reconciler.initialSync();
  expect(program.services).toEqual(["service/a"]);
});

test("more endpoints than a group takes, and those of another family, are left out and told of", async () => {
  const { program, reconciler, log, have } = keeping();
  await using _ = reconciler;
  const many = Array.from({ length: 501 }, (_, i) => `10.20.${i >> 8}.${i & 255}`);
  await have(service("a", "10.96.0.1", [...many, "fd00::1", "10.20.0.7"]));
  expect(program.parts.get("service/a")?.groups?.[0]?.buckets).toHaveLength(500);
  expect(log.join()).toContain('Cannot give service \\"a\\" all endpoints: it has 503, wanted 500 at the most');
});

test("ends in the middle of a change, and follows no longer", async () => {
  const { program, reconciler, say } = keeping();
  const gate = Promise.withResolvers<void>();
  program.held = gate.promise;
  say(service("a", "10.96.0.1"));
  await Bun.sleep(0);
  await reconciler[Symbol.asyncDispose]();
  gate.resolve();
  const calls = program.calls.length;
  say(service("b", "10.96.0.2"));
  await Bun.sleep(5);
  expect(program.calls).toHaveLength(calls);
});

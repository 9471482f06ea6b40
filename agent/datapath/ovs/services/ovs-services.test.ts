import { expect, test } from "vitest";
import { CniCode, CniError } from "../../../../shared/errors.ts";
import { createLogger } from "../../../../shared/log.ts";
import { formatIp, parseCidr, parseIp } from "../../../../shared/net/ip.ts";
import { endpointAt, servicePort } from "../../../../test/fakes/service-port.ts";
import type { ServicePort } from "../../services.ts";
import { nodePortsName } from "../node-host.ts";
import type { ServiceWays } from "../overlay-node.ts";
import type { FlowSet } from "../program/flow-set.ts";
import { OvsServices } from "./ovs-services.ts";

const cidr = (text: string) => parseCidr(text)!;

const service = (key: string, clusterIp: string, endpoints: readonly string[] = ["10.10.1.2"]): ServicePort =>
  servicePort({ key, clusterIp, endpoints: endpoints.map((text) => endpointAt(text)) });

/** Stands for the switch's program: takes its time, refuses what it is told to, and has what it took. */
class ScriptedProgram {
  readonly parts = new Map<string, FlowSet>();
  readonly calls: (readonly string[])[] = [];
  refuses: (parts: ReadonlyMap<string, FlowSet | undefined>) => CniError | undefined = () => undefined;
  /** As while the switch is away: a call fails with 11, and what it sets is kept. */
  isAway = false;
  readonly status = { connected: true, lastError: "", refused: new Map<string, string>() };
  readonly compared: (readonly number[] | undefined)[] = [];
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

  async compare(_repair: boolean, part?: { readonly tables: readonly number[] }): Promise<readonly string[]> {
    this.compared.push(part?.tables);
    return ["the switch lacks 1 flow"];
  }

  get services(): readonly string[] {
    return [...this.parts.keys()].filter((key) => key.startsWith("service/")).sort();
  }

  get hairpins(): readonly string[] {
    return [...this.parts.keys()].filter((key) => key.startsWith("service-hairpin/")).sort();
  }
}

function keeping({ proxyAll = true, nodePortAddresses = [] as readonly string[] } = {}) {
  const program = new ScriptedProgram();
  const log: string[] = [];
  const ways: ServiceWays[] = [];
  const unserved = new Map<string, string>();
  const told = { completions: 0 };
  const services = new OvsServices({
    cidrs: [cidr("10.96.0.0/16")],
    proxyAll,
    nodePortAddresses: nodePortAddresses.map(cidr),
    management: "unix:/nowhere/br-int.mgmt",
    logger: createLogger("info", (line) => void log.push(line)),
  });
  const begin = (): void =>
    services.begin(
      program,
      {
        podSubnets: [cidr("10.10.1.0/24")],
        gateway: { ofport: 2, mac: "02:00:00:00:00:01", addresses: [] },
        nodeAddresses: [],
      },
      {
        open: async (latest) => {
          ways.push(latest);
          return unserved;
        },
        complete: async () => void told.completions++,
      },
    );
  begin();
  const have = (...all: readonly ServicePort[]) => apply(new AbortController().signal, ...all);
  const apply = (signal: AbortSignal, ...all: readonly ServicePort[]) =>
    services.apply(new Map(all.map((one) => [one.key, one])), signal);
  return { program, services, log, have, apply, begin, ways, unserved, told };
}

test("a newer state ends the present one after its step, and the same again is no change", async () => {
  const { program, services, have, apply } = keeping();
  await using _ = services;
  const many = Array.from({ length: 700 }, (_, i) =>
    service(
      `s${i}`,
      `10.96.${i >> 8}.${i & 255}`,
      Array.from({ length: 10 }, (_, k) => `10.10.${k}.2`),
    ),
  );
  const newer = new AbortController();
  const gate = Promise.withResolvers<void>();
  program.held = gate.promise;
  const first = apply(newer.signal, ...many);
  newer.abort();
  gate.resolve();
  await first;
  expect(program.services).toEqual([]);
  const [one, other] = [service("a", "10.97.0.1"), service("b", "10.97.0.2")];
  await have(one, other);
  expect(program.services).toEqual(["service/a", "service/b"]);
  const before = program.calls.length;
  await have(other, one);
  await have(service("b", "10.97.0.2"), service("a", "10.97.0.1"));
  expect(program.calls).toHaveLength(before);
});

test("endpoints in another order are no change; one more, or another weight, is one of that service alone", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
  const other = service("b", "10.96.0.2");
  await have(service("a", "10.96.0.1", ["10.10.1.2", "10.10.1.3"]), other);
  const before = program.calls.length;
  await have(service("a", "10.96.0.1", ["10.10.1.3", "10.10.1.2"]), other);
  expect(program.calls).toHaveLength(before);
  await have(service("a", "10.96.0.1", ["10.10.1.3", "10.10.1.2", "10.10.2.2"]), other);
  expect(program.calls.slice(before)).toEqual([["service/a"]]);
});

test("own endpoints have their way to themselves as long as any service has them", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
  const [a, b] = [service("a", "10.96.0.1", ["10.10.1.2", "10.10.2.2"]), service("b", "10.96.0.2")];
  await have(a, b);
  expect(program.hairpins).toEqual(["service-hairpin/10.10.1.2"]);
  await have(b);
  expect(program.hairpins).toEqual(["service-hairpin/10.10.1.2"]);
  await have(service("b", "10.96.0.2", []));
  expect(program.hairpins).toEqual([]);
  await have({ ...a, clusterIp: parseIp("10.96.0.9")! });
  await have({ ...a, clusterIp: parseIp("10.96.0.8")! });
  expect(program.hairpins).toEqual(["service-hairpin/10.10.1.2"]);
  await have();
  expect([program.services, program.hairpins]).toEqual([[], []]);
});

test("a service that gets another address keeps its number, so that no other gets its group", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
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
  const { program, services, have } = keeping();
  await using _ = services;
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
  const refused = await have(...all.map((one, i) => ({ ...one, clusterIp: all.at(-1 - i)!.clusterIp })));
  expect([program.services.length, refused]).toEqual([700, []]);
});

test("a service that the switch refuses costs the others nothing, and is told of", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
  program.refuses = (parts) =>
    parts.has("service/s5") ? new CniError(CniCode.interfaceFailure, "Cannot put it in: it is bad") : undefined;
  const all = Array.from({ length: 20 }, (_, i) => service(`s${i}`, `10.96.0.${i + 1}`));
  expect(await have(...all)).toEqual([{ key: "s5", reason: "Cannot put it in: it is bad" }]);
  expect(program.services).toHaveLength(19);
  program.refuses = () => undefined;
  expect(await have(...all, service("more", "10.96.0.100"))).toEqual([]);
  expect(program.services).toHaveLength(21);
});

test("while the switch is away nothing can be changed, and later all is", async () => {
  const { program, services, have, told } = keeping();
  await using _ = services;
  let times = 0;
  program.refuses = () =>
    ++times <= 2 ? new CniError(CniCode.tryAgainLater, "Cannot reach the switch: it is away") : undefined;
  for (const _time of [1, 2]) await expect(have(service("a", "10.96.0.1"))).rejects.toMatchObject({ code: 11 });
  expect([program.services, told.completions]).toEqual([[], 0]);
  await have(service("a", "10.96.0.1"));
  expect([program.services, told.completions]).toEqual([["service/a"], 1]);
});

test("before the switch is set up it is to be called again", async () => {
  const services = new OvsServices({
    cidrs: [],
    proxyAll: true,
    nodePortAddresses: [],
    management: "unix:/nowhere",
    logger: createLogger("error", () => undefined),
  });
  await using _ = services;
  await expect(services.apply(new Map(), new AbortController().signal)).rejects.toMatchObject({ code: 11 });
  await expect(services.differences()).rejects.toMatchObject({ code: 11 });
});

test("what comes and goes again while the switch is away is not left in it", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
  const [a, b] = [service("a", "10.96.0.1", ["10.10.1.2"]), service("b", "10.96.0.2", ["10.10.1.3"])];
  await have(a);
  const first = program.parts.get("service/a");
  program.isAway = true;
  const away = { code: 11 };
  await expect(have(a, b)).rejects.toMatchObject(away);
  expect(program.services).toEqual(["service/a", "service/b"]);
  await expect(have(service("a", "10.96.0.1", ["10.10.1.9"]))).rejects.toMatchObject(away);
  await expect(have(a)).rejects.toMatchObject(away);
  program.isAway = false;
  await have(a);
  expect([program.services, program.hairpins]).toEqual([["service/a"], ["service-hairpin/10.10.1.2"]]);
  expect(program.parts.get("service/a")).toEqual(first);
  const calls = program.calls.length;
  await have(a);
  expect(program.calls).toHaveLength(calls);
});

test("a service that says what no switch can have costs the others nothing", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
  const [refused] = await have(service("a", "10.96.0.1"), { ...service("b", "10.96.0.2"), port: 70_000 });
  expect(program.services).toEqual(["service/a"]);
  expect(refused?.reason).toContain("0x11170 is too large, wanted 16 bits");
});

test("more endpoints than a group takes, and those of another family, are left out and told of", async () => {
  const { program, services, have } = keeping();
  await using _ = services;
  const many = Array.from({ length: 501 }, (_, i) => `10.20.${i >> 8}.${i & 255}`);
  const [refused] = await have(service("a", "10.96.0.1", [...many, "fd00::1", "10.20.0.7"]));
  expect(program.parts.get("service/a")?.groups?.[0]?.buckets).toHaveLength(500);
  expect(refused).toEqual({ key: "a", reason: "it has 503 endpoints, of which 500 are used" });
});

test("ends in the middle of a change", async () => {
  const { program, services, have } = keeping();
  const gate = Promise.withResolvers<void>();
  program.held = gate.promise;
  const changing = have(service("a", "10.96.0.1"));
  await services[Symbol.asyncDispose]();
  gate.resolve();
  await changing;
  expect(program.services).toEqual([]);
});

test("the node is told what it has to bring to the switch, as often as that may have changed", async () => {
  const { services, have, ways, unserved, told, begin } = keeping();
  await using _ = services;
  const outer = servicePort({
    key: "a",
    nodePort: 30080,
    externalIps: ["192.0.2.1"],
    endpoints: [endpointAt("10.1.1.1")],
  });
  expect(await have(outer, servicePort({ key: "b", clusterIp: "10.96.0.2", nodePort: 30081 }))).toEqual([]);
  const port = { protocol: "tcp", family: 4 } as const;
  const text = ({ ips, ...others }: ServiceWays) => ({ ips: ips.map(formatIp), ...others });
  expect(ways.map(text)).toEqual([
    {
      ips: ["192.0.2.1"],
      nodePorts: [
        { ...port, port: 30080 },
        { ...port, port: 30081 },
      ],
      refused: [
        { ...port, ip: parseIp("10.96.0.2"), port: 80 },
        { ...port, port: 30081 },
      ],
    },
  ]);
  await have(outer, servicePort({ key: "b", clusterIp: "10.96.0.2", nodePort: 30081 }));
  expect([ways.length, told.completions]).toEqual([1, 1]);
  unserved.set("192.0.2.1", "it is an address of the node itself");
  unserved.set(nodePortsName, "the system gives nothing");
  expect(await have(outer, servicePort({ key: "c", clusterIp: "10.96.0.3", nodePort: 30082 }))).toEqual([
    { key: "a", reason: "only pods reach it by 192.0.2.1: it is an address of the node itself" },
    { key: "c", reason: "only pods reach it by node ports: the system gives nothing" },
  ]);
  begin();
  await have(outer);
  expect([ways.length, told.completions]).toEqual([3, 2]);
});

test("cluster IPs alone", async () => {
  const { program, services, have, ways, told } = keeping({ proxyAll: false });
  await using _ = services;
  await have(servicePort({ key: "a", nodePort: 30080, endpoints: [endpointAt("10.1.1.1")] }));
  expect([program.parts.get("service/a")?.flows.length, ways, told.completions]).toEqual([2, [], 1]);
});

test("node ports answer at all addresses, or at those of some blocks", async () => {
  const ips = ["192.0.2.1", "198.51.100.1", "fd00::1"].map((text) => parseIp(text)!);
  const at = async (...nodePortAddresses: readonly string[]) => {
    await using services = keeping({ nodePortAddresses }).services;
    return services.answersAt(ips).map(formatIp);
  };
  expect(await at()).toEqual(ips.map(formatIp));
  expect(await at("198.51.100.0/24", "fd00::/8")).toEqual(["198.51.100.1", "fd00::1"]);
});

test("differences are those of the services' tables", async () => {
  const { program, services } = keeping();
  await using _ = services;
  expect(await services.differences()).toEqual(["the switch lacks 1 flow"]);
  expect(program.compared).toEqual([[90, 95, 110, 120]]);
  Object.assign(program.status, { connected: false });
  expect(await services.differences()).toEqual([expect.stringContaining("the switch is away")]);
});

import { chmodSync, existsSync, readFileSync, statSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Owner } from "../../shared/cni/types.ts";
import { createLogger } from "../../shared/log.ts";
import { ipv4, ipv6, Protocol, udp } from "../../test/support/frames/frame.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import type { Isolation, PodRule } from "../datapath/policies.ts";
import { VerdictLog } from "./verdict-log.ts";

const owner: Owner = { network: "pods", sandboxId: "s1", ifname: "eth0" };
const policy = (name: string) => ({ namespace: "x", name, uid: name });
const rule: PodRule = { id: "r1", policy: policy("allow-dns"), direction: "egress", targets: [owner] };
const isolation: Isolation = { owner, directions: ["egress"], by: [policy("deny-all"), policy("allow-dns")] };

const ends = { from: "10.0.0.5", to: "10.0.0.9" };
const ends6 = { from: "fd00::5", to: "fd00::9" };
const query = (to = 53) => ipv4(ends, Protocol.udp, udp(ends, { from: 4000, to }, [1, 2, 3]));
/** Destination options of eight bytes stand in front. */
const query6 = ipv6(ends6, 60, [Protocol.udp, 0, 0, 0, 0, 0, 0, 0, ...udp(ends6, { from: 4000, to: 53 }, [])]);
const laterFragment = query().with(6, 0x20).with(7, 1);

let directory: ReturnType<typeof scratchDir>;
let isolated: Isolation | undefined;
const said: string[] = [];
beforeEach(() => {
  directory = scratchDir();
  isolated = isolation;
  said.length = 0;
});
afterEach(() => directory[Symbol.dispose]());

const open = (bounds: { lines?: number; bytes?: number } = {}): VerdictLog =>
  new VerdictLog({
    dataDir: directory.path,
    podOf: () => "x/client",
    isolationOf: () => isolated,
    logger: createLogger("error", (line) => said.push(line)),
    bounds: { gatherMs: 60_000, ...bounds },
  });
const linesIn = (path: string): string[] => readFileSync(path, "utf8").trim().split("\n");

describe("a line", () => {
  test.each([
    [
      "of an allowed connection",
      { direction: "egress", owner, rule, packet: query() },
      "EgressRule K8sNetworkPolicy:x/allow-dns r1 Egress Allow <nil> x/client 10.0.0.5 4000 10.0.0.9 53 UDP 31 <nil>",
    ],
    [
      "of a refused packet, with what isolates the pod",
      { direction: "egress", owner, packet: query() },
      "EgressDefaultRule K8sNetworkPolicy <nil> Egress Drop <nil> x/client 10.0.0.5 4000 10.0.0.9 53 UDP 31 <nil> " +
        "isolated by x/deny-all,x/allow-dns",
    ],
    [
      "of IPv6 with extension headers",
      { direction: "ingress", owner, rule: { ...rule, direction: "ingress" }, packet: query6 },
      "IngressRule K8sNetworkPolicy:x/allow-dns r1 Ingress Allow <nil> x/client fd00::5 4000 fd00::9 53 UDP 56 <nil>",
    ],
    [
      "of a later fragment, which has no ports",
      { direction: "egress", owner, rule, packet: laterFragment },
      "EgressRule K8sNetworkPolicy:x/allow-dns r1 Egress Allow <nil> x/client 10.0.0.5 <nil> 10.0.0.9 <nil> UDP 31 <nil>",
    ],
  ] as const)("%s", (_, verdict, line) => {
    using log = open();
    log.add(verdict);
    log[Symbol.dispose]();
    expect(linesIn(log.path)[0]).toMatch(/^\d{4}\/\d\d\/\d\d \d\d:\d\d:\d\d\.\d{6} /);
    expect(linesIn(log.path).map((text) => text.split(" ").slice(2).join(" "))).toEqual([line]);
  });

  test("of a pod whose policies are not known yet says so", () => {
    isolated = { owner, directions: ["egress"], by: [] };
    using log = open();
    log.add({ direction: "egress", owner, packet: query() });
    log[Symbol.dispose]();
    expect(linesIn(log.path)[0]).toMatch(/ <nil> isolated: its policies are not known yet$/);
  });
});

test("what is no packet writes nothing", () => {
  using log = open();
  for (const packet of [new Uint8Array(), query().subarray(0, 19), query6.subarray(0, 39), Uint8Array.of(0x20)])
    log.add({ direction: "egress", owner, packet });
  log[Symbol.dispose]();
  expect(existsSync(log.path)).toBe(false);
});

test("equal packets are one line with their number, and what is beyond the bound of lines is counted", () => {
  using log = open({ lines: 2 });
  for (const port of [53, 54, 55, 53, 56]) log.add({ direction: "egress", owner, rule, packet: query(port) });
  log[Symbol.dispose]();
  const lines = linesIn(log.path);
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(/ 53 UDP 31 <nil> \[2 packets in 60s\]$/);
  expect(lines[1]).toMatch(/ 54 UDP 31 <nil>$/);
  expect(lines[2]).toMatch(/ 2 more verdicts are not told one by one$/);
});

test("the file is its owner's alone, and bounded with the one before", () => {
  using log = open({ bytes: 1000 });
  for (let i = 0; i < 40; i++) {
    log.add({ direction: "egress", owner, rule, packet: query(i) });
    log[Symbol.dispose]();
    for (const path of [log.path, `${log.path}.1`].filter(existsSync)) {
      expect(statSync(path).size).toBeLessThan(1300);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    }
  }
  expect(linesIn(`${log.path}.1`).length).toBeGreaterThan(2);
});

test("a file that others can change is not written, and people are told once", () => {
  using log = open();
  const say = () => {
    log.add({ direction: "egress", owner, rule, packet: query() });
    log[Symbol.dispose]();
  };
  say();
  chmodSync(log.path, 0o666);
  say();
  say();
  expect(log.problem).toContain(`Cannot write the log "${log.path}"`);
  expect(said).toHaveLength(1);
  chmodSync(log.path, 0o600);
  say();
  expect(log.problem).toBeUndefined();
});

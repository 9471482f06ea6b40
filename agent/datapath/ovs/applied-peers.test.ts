import { expect, test } from "vitest";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { parseCidr, parseIp } from "../../../shared/net/ip.ts";
import type { ClusterNode } from "../../cluster/node-registry.ts";
import { AppliedPeers } from "./applied-peers.ts";
import type { PipelineContext } from "./pipeline/context.ts";
import type { FlowSet, SwitchProgram } from "./program/flow-set.ts";

const ip = (text: string) => parseIp(text)!;
const cidr = (text: string) => parseCidr(text)!;
const context: PipelineContext = {
  mode: "encap",
  gateway: { ofport: 2, mac: "0e:00:0a:0a:01:01", addresses: [ip("10.10.1.1")] },
  tunnel: { ofport: 1, type: "geneve" },
  nodeAddresses: [cidr("172.30.0.1/24")],
  podSubnets: [cidr("10.10.1.0/24")],
  multitenant: false,
};
const node = (name: string, number: number): ClusterNode => ({
  name,
  uid: name,
  addresses: [ip(`172.30.0.${number}`)],
  subnets: [cidr(`10.10.${number}.0/24`)],
});

/** Keeps what it is told, and refuses some of it. */
class Told implements SwitchProgram {
  readonly round = 1;
  readonly calls: string[] = [];
  refused = new Set<string>();
  async set(parts: ReadonlyMap<string, FlowSet | undefined>): Promise<void> {
    for (const [key, part] of parts) this.calls.push(`${part === undefined ? "without" : "with"} ${key}`);
    if ([...parts.keys()].some((key) => this.refused.has(key))) throw new CniError(CniCode.interfaceFailure, "refused");
  }
  take(): string[] {
    return this.calls.splice(0);
  }
}

test("the switch is told of what is new, different or gone, and of nothing else", async () => {
  const [parts, program] = [new AppliedPeers(), new Told()];
  const tell = (...nodes: ClusterNode[]) =>
    parts.apply(program, context, new Map(nodes.map((each) => [each.name, each])));
  expect(await tell(node("a", 2), node("b", 3))).toBe(true);
  expect(program.take()).toEqual(["with node/a", "with node/b"]);
  expect(await tell(node("b", 3), node("a", 2))).toBe(false);
  expect(program.take()).toEqual([]);
  // Those that go make room first.
  await tell(node("b", 9), node("c", 2));
  expect(program.take()).toEqual(["without node/a", "with node/b", "with node/c"]);
  parts.markDirty();
  await tell(node("b", 9));
  expect(program.take()).toEqual(["without node/c", "with node/b"]);
});

test("one that is refused costs the others nothing, and is told again until it is taken", async () => {
  const [parts, program] = [new AppliedPeers(), new Told()];
  const nodes = new Map([node("a", 2), node("b", 3), node("c", 4)].map((each) => [each.name, each]));
  program.refused.add("node/b");
  await expect(parts.apply(program, context, nodes)).rejects.toMatchObject({ code: 102 });
  expect(program.take()).toEqual(["with node/a", "with node/b", "with node/c"]);
  await expect(parts.apply(program, context, nodes)).rejects.toThrow("refused");
  expect(program.take()).toEqual(["with node/b"]);
  expect([...parts.refusals]).toEqual([["node/b", "refused"]]);
  program.refused.clear();
  expect(await parts.apply(program, context, nodes)).toBe(true);
  expect(parts.refusals.size).toBe(0);
  expect(await parts.apply(program, context, nodes)).toBe(false);
});

test("one that goes is told of until the switch has heard, also where it was refused before", async () => {
  const [parts, program] = [new AppliedPeers(), new Told()];
  const tell = (...nodes: ClusterNode[]) =>
    parts.apply(program, context, new Map(nodes.map((each) => [each.name, each])));
  await tell(node("a", 2), node("b", 3));
  program.take();
  program.refused.add("node/a").add("node/b");
  await expect(tell(node("b", 9))).rejects.toThrow("refused");
  expect(program.take()).toEqual(["without node/a", "with node/b"]);
  program.refused.clear();
  await tell();
  expect(program.take().toSorted()).toEqual(["without node/a", "without node/b"]);
  expect(await tell()).toBe(false);
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { formatIp } from "../../../shared/net/ip.ts";
import { guidOf, type KindWorld, play, scenariosOf } from "../../fakes/container-kinds.ts";
import { random } from "../../support/random.ts";
import { seed } from "../../support/seed.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

describeWine("sandbox and workload, with the compiled plugin and agent", (wine) => {
  let node: WindowsNode;
  beforeAll(async () => {
    node = await WindowsNode.make(wine.prefix);
    for (const guid of Object.values(guidOf)) node.addNamespace(guid);
    await node.start();
  });
  afterAll(() => node[Symbol.asyncDispose]());

  const draw = random(seed);
  const world: KindWorld = {
    cni: (verb, id, netns) => node.cni(verb, id, { netns }),
    async restart() {
      // As a service that is stopped, and as one that dies.
      await node.stop(draw(2) === 0);
      await node.start();
    },
    /** Sandboxes by their addresses: an endpoint must have the address of a lease, and the other way round. */
    async state() {
      const leases = (await node.leases()).filter(({ state }) => state === "allocated");
      const owners = new Map(leases.map(({ address, owner }) => [formatIp(address.ip), owner.sandboxId]));
      const interfaces = node
        .endpoints()
        .flatMap(addressesOf)
        .map((address) => owners.get(address) ?? address);
      return { leases: [...owners.values()].sort(), interfaces: interfaces.sort() };
    },
  };

  describe.each(["containerd", "docker"] as const)("under a runtime like %s", (style) => {
    // What the styles have in common is played once here, and twice in memory.
    const all = scenariosOf(style, 2);
    const own = style === "docker" ? all.filter(({ name }) => !/cannot be|every order/.test(name)) : all;
    test.each(own)("$name", (scenario) => play(world, scenario), 120_000);
  });

  test("has closed every handle, and freed every string", () => {
    expect(node.stubs.hns.handles.list()).toEqual([]);
    // A call may begin while another thread still has a string in its hand; one that nobody frees is there with every later call.
    const processes = Map.groupBy(node.stubs.hns.calls, ({ pid }) => pid);
    expect(processes.size).toBeGreaterThan(0);
    for (const calls of processes.values()) {
      expect(Math.min(...calls.slice(-4).map(({ strings }) => strings))).toBe(0);
    }
  });
});

import { describe, expect, test, vi } from "vitest";
import { PluginNode, podResult, result } from "../test/fakes/plugin-node.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const before = {
  cniVersion: "1.1.0",
  interfaces: [{ name: "br0" }, { name: "eth0" }],
  ips: [{ address: "10.9.0.1/24", interface: 0 }],
  routes: [{ dst: "10.8.0.0/16" }],
  dns: { search: ["before"] },
};

describe("a plugin that is not the first of its chain", () => {
  test("puts its own behind what it was given, and counts its interfaces on", async () => {
    const own = { ...JSON.parse(podResult), routes: [{ dst: "0.0.0.0/0" }] };
    own.ips.push({ address: "fd00::2/64" });
    using node = new PluginNode(() => result(JSON.stringify(own)));
    const { out } = await node.call("ADD", { prevResult: before });
    expect(out.interfaces.map(({ name }: { name: string }) => name)).toEqual(["br0", "eth0", "eth0"]);
    expect(out.ips).toEqual([...before.ips, { address: "10.0.0.2/29", interface: 2 }, { address: "fd00::2/64" }]);
    expect(out.routes).toEqual([{ dst: "10.8.0.0/16" }, { dst: "0.0.0.0/0" }]);
    expect(out.dns).toEqual({ search: ["before"] });
    node.serve(() => result(JSON.stringify({ ...own, dns: { search: ["own"] } })));
    expect((await node.call("ADD", { prevResult: before })).out.dns).toEqual({ search: ["own"] });
  });

  test("refuses a name that the sandbox has already, at ADD only and for this name only", async () => {
    const taken = { ...before, interfaces: [{ name: "eth0", sandbox: "/run/netns/a" }] };
    using node = new PluginNode(() => result(podResult));
    const { out } = await node.call("ADD", { prevResult: taken });
    expect(out).toMatchObject({ code: 7, msg: expect.stringContaining('no sandbox interface "eth0" before') });
    expect(node.asked).toEqual([]);
    expect((await node.call("CHECK", { prevResult: taken })).status).toBe(0);
    expect((await node.call("ADD", { prevResult: taken }, { CNI_IFNAME: "eth1" })).status).toBe(0);
  });
});

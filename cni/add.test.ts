import { describe, expect, test, vi } from "vitest";
import { GrpcCode, RpcError } from "../shared/rpc/rpc-error.ts";
import type { Agent } from "../test/fakes/agent-calls.ts";
import { PluginNode, podResult, refused, result } from "../test/fakes/plugin-node.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const silent = (): never => {
  throw new RpcError(GrpcCode.deadlineExceeded, "no answer");
};
const unreached = (): never => {
  throw new RpcError(GrpcCode.unknown, "no connection", { unreachable: true });
};
/** Ends over the first call, and does this at the second. */
const killedThen = (next: Agent): Agent => {
  let calls = 0;
  return (asked) => {
    if (calls++ > 0) return next(asked);
    throw new RpcError(GrpcCode.unavailable, "it ended");
  };
};

/** How an ADD ended, and whether something of it may still stand that the agent has to be told of. */
const endings: readonly (readonly [string, () => Agent, "word" | "nothing"])[] = [
  ["a call without an answer", () => silent, "word"],
  ["a refusal, which the agent has undone", () => () => refused(101, "full"), "nothing"],
  ["a refusal after another agent was killed over the call", () => killedThen(() => refused(101, "full")), "word"],
  ["a call that reached nobody", () => unreached, "nothing"],
  ["no CNI result", () => () => result("[]"), "word"],
  ["an empty result", () => () => result(), "word"],
];

describe("ADD", () => {
  test("answers what the agent does, and asks it with what came", async () => {
    using node = new PluginNode(() => result(podResult));
    const { status, out } = await node.call("ADD", { "x-other": 1 }, { CNI_ARGS: "A=b" });
    expect([status, out]).toEqual([0, JSON.parse(podResult)]);
    const [asked] = node.asked;
    const { networkConfiguration, ...args } = asked?.request ?? {};
    expect(args).toEqual({ containerId: "c1", netns: "/run/netns/a", ifname: "eth0", args: "A=b", path: node.bin });
    expect(JSON.parse(networkConfiguration)).toMatchObject({ name: "n", "x-other": 1 });
    expect([asked?.method, asked?.socket, await node.kept()]).toEqual(["CmdAdd", "/run/a.sock", []]);
  });

  test("without a namespace is refused before anybody is asked", async () => {
    using node = new PluginNode();
    expect((await node.call("ADD", {}, { CNI_NETNS: "relative" })).out).toMatchObject({
      code: 4,
      msg: 'Cannot read the environment: CNI_NETNS is "relative", wanted the absolute path of a network namespace',
    });
    expect(node.asked).toEqual([]);
  });

  test.each(endings)("after %s gives up what it took where nobody else does", async (_, agent, leaves) => {
    using node = new PluginNode();
    await node.lease("c0");
    const answer = agent();
    node.serve(async (asked) => {
      await node.lease();
      return answer(asked);
    });
    const { status, out } = await node.call("ADD");
    expect([status, out.code > 0]).toEqual([1, true]);
    expect(await node.kept()).toEqual(["c0: allocated", leaves === "word" ? "c1: releasing" : "c1: allocated"]);
  });

  test.each(endings)(
    "with another IPAM plugin, after %s, undoes that and leaves word where need be",
    async (_, agent, leaves) => {
      using node = new PluginNode(agent());
      const ipam = node.plugin("other", `test $CNI_COMMAND != ADD || echo '${podResult}'`);
      const { status } = await node.call("ADD", { ipam });
      expect([status, node.delegated]).toEqual([1, ["ADD", "DEL"]]);
      expect(await node.kept()).toEqual(leaves === "word" ? ["c1: departing"] : []);
    },
  );

  test("with another IPAM plugin hands its addresses on, behind a configuration that stays as it is", async () => {
    using node = new PluginNode(() => result(podResult));
    const ipam = node.plugin("other", `echo '${podResult}'`);
    expect(await node.call("ADD", { ipam }, {}, "\n \n")).toMatchObject({ status: 0, out: { ips: [{}] } });
    const text: string = node.asked[0]?.request.networkConfiguration;
    expect(text).toMatch(/^\{"dataDir":.*"ipam":\{"type":"other"\}.*,"ipamResult":\{"cniVersion":"1\.1\.0".*\}\}$/);
    expect(JSON.parse(text)).toMatchObject({ ipamResult: { ips: [{ address: "10.0.0.2/29" }] } });
    expect([node.delegated, await node.kept()]).toEqual([["ADD"], []]);
  });

  test("whose other IPAM plugin fails asks no agent, and undoes it", async () => {
    using node = new PluginNode();
    const ipam = node.plugin("other", `test $CNI_COMMAND != ADD || { echo '{"code":137,"msg":"closed"}'; exit 1; }`);
    expect((await node.call("ADD", { ipam })).out).toMatchObject({ code: 137, msg: "closed" });
    expect([node.delegated, node.asked, await node.kept()]).toEqual([["ADD", "DEL"], [], []]);
  });

  test("whose undoing fails says what was wrong first, and the rest to the log", async () => {
    using node = new PluginNode(() => refused(107, "no bridge"));
    const ipam = node.plugin("other", `test $CNI_COMMAND = ADD && echo '${podResult}'`);
    const { out, log } = await node.call("ADD", { ipam });
    expect(out).toMatchObject({ code: 107, msg: "no bridge" });
    expect(log.join("\n")).toContain("Cannot undo the delegated ADD: ");
  });

  test("in a chain answers what came before it, and then its own", async () => {
    using node = new PluginNode(() => result(podResult));
    const prevResult = { cniVersion: "1.1.0", interfaces: [{ name: "br0" }], ips: [{ address: "10.9.0.1/24" }] };
    const { out } = await node.call("ADD", { prevResult });
    expect(out.interfaces.map(({ name }: { name: string }) => name)).toEqual(["br0", "eth0"]);
    expect(out.ips).toEqual([{ address: "10.9.0.1/24" }, { address: "10.0.0.2/29", interface: 1 }]);
  });
});

describe("a clock that is set in mid-ADD", () => {
  const hourMs = 3_600_000;

  test.each([
    ["forward", hourMs],
    ["back", -hourMs],
    ["not at all", 0],
  ])("%s: what the ADD took is given up all the same", async (_, byMs) => {
    using node = new PluginNode();
    const now = Date.now;
    try {
      node.serve(async () => {
        await node.lease("before");
        vi.spyOn(Date, "now").mockImplementation(() => now() + byMs);
        await node.lease();
        return silent();
      });
      await node.call("ADD");
    } finally {
      vi.restoreAllMocks();
    }
    expect(await node.kept()).toEqual(["before: allocated", "c1: releasing"]);
  });

  test("before it was set: also", async () => {
    using node = new PluginNode();
    const now = Date.now;
    try {
      node.serve(async () => {
        await node.lease();
        vi.spyOn(Date, "now").mockImplementation(() => now() + hourMs);
        return silent();
      });
      await node.call("ADD");
    } finally {
      vi.restoreAllMocks();
    }
    expect(await node.kept()).toEqual(["c1: releasing"]);
  });

  test.each([
    ["an hour before", -hourMs],
    ["by a clock that was an hour ahead", hourMs],
    ["a tenth of a second before", -100],
  ])("the lease of a pod that came %s stays", async (_, byMs) => {
    using node = new PluginNode();
    const now = Date.now;
    try {
      vi.spyOn(Date, "now").mockImplementation(() => now() + byMs);
      await node.lease();
    } finally {
      vi.restoreAllMocks();
    }
    node.serve(silent);
    await node.call("ADD");
    expect(await node.kept()).toEqual(["c1: allocated"]);
  });
});

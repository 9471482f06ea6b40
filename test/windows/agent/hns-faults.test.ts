import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Fault } from "../../fakes/hns/faults.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { WindowsNode } from "./windows-node.ts";

/** Functions of HNS that an ADD, and a DEL, of a sandbox call. */
const addCalls = ["HcnOpenEndpoint", "HcnOpenNetwork", "HcnCreateEndpoint", "HcnOpenNamespace", "HcnModifyNamespace"];
const delCalls = ["HcnOpenEndpoint", "HcnQueryEndpointProperties", "HcnModifyNamespace", "HcnDeleteEndpoint"];

describeWine("HNS that goes wrong", (wine) => {
  let node: WindowsNode;
  let netns = "";
  beforeAll(async () => {
    node = await WindowsNode.make(wine.prefix);
    await node.start();
  });
  afterAll(() => node[Symbol.asyncDispose]());
  beforeEach(() => {
    netns = node.stubs.hns.newNamespace();
  });

  const whole = async (): Promise<void> => {
    expect((await node.cni("ADD", "a", { netns })).t).toBe("ok");
    expect(node.endpoints()).toHaveLength(1);
    expect((await node.cni("DEL", "a", { netns })).t).toBe("ok");
    expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
  };

  test.each(addCalls)(
    "%s fails during ADD: an error, nothing left, and the next ADD is whole",
    async (call) => {
      {
        using _ = node.stubs.hns.fault({ call, hresult: 0x80004005 });
        expect(await node.cni("ADD", "a", { netns })).toMatchObject({ t: "error", code: 102 });
      }
      expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
      await whole();
    },
    60_000,
  );

  test.each(delCalls)(
    "peers 12: %s fails during DEL: success, and the janitor goes on with it",
    async (call) => {
      await node.cni("ADD", "a", { netns });
      {
        using _ = node.stubs.hns.fault({ call, hresult: 0x80004005 });
        expect((await node.cni("DEL", "a", { netns })).t).toBe("ok");
      }
      expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
      await whole();
    },
    60_000,
  );

  test.each([0x803b0001, 0x803b0002, 0x80070490])(
    "peers 11: a deletion that finds nothing (%i) is one",
    async (hresult) => {
      await node.cni("ADD", "a", { netns });
      node.stubs.hns.store.endpoints.clear();
      using _ = node.stubs.hns.fault({ call: "HcnOpenEndpoint", hresult });
      expect((await node.cni("DEL", "a", { netns })).t).toBe("ok");
      expect((await node.leases()).map(({ state }) => state)).toEqual(["cooling"]);
    },
    60_000,
  );

  describe("or hangs", () => {
    /** The plugin's own bound is shorter than a call's to HNS. */
    const conf = { addTimeoutMs: 1_500, delTimeoutMs: 1_500 };

    test.each<Pick<Fault, "call" | "effectFirst">>([
      { call: "HcnOpenEndpoint" },
      { call: "HcnCreateEndpoint" },
      { call: "HcnCreateEndpoint", effectFirst: true },
      { call: "HcnModifyNamespace" },
    ])(
      "$call during ADD: code 11 in time, others are served, and in the end nothing is left",
      async (fault) => {
        const other = node.stubs.hns.newNamespace();
        {
          using hang = node.stubs.hns.fault({ ...fault, times: 1, holdMs: "until released" });
          const given = node.cni("ADD", "a", { netns, conf });
          await hang.hit();
          expect((await node.cni("ADD", "b", { netns: other })).t).toBe("ok");
          expect(await given).toMatchObject({ t: "error", code: 11 });
        }
        expect((await node.cni("DEL", "b", { netns: other })).t).toBe("ok");
        expect([await node.disagreements(30_000), node.endpoints()]).toEqual([[], []]);
        await whole();
      },
      90_000,
    );

    test("peers 10: longer than the agent waits: it gives the call up, says so, and takes what comes of it later away", async () => {
      await node.stop();
      await node.start({}, { hnsTimeoutMs: 2_000 });
      {
        using hang = node.stubs.hns.fault({ call: "HcnCreateEndpoint", times: 1, holdMs: "until released" });
        const answer = await node.cni("ADD", "a", { netns });
        expect(answer).toMatchObject({ t: "error", code: 11, message: expect.stringContaining("HcnCreateEndpoint") });
        expect(hang.hits).toBe(1);
        expect([(await node.leases()).map(({ state }) => state), node.endpoints()]).toEqual([["cooling"], []]);
      }
      // Released, the call makes the endpoint, which nobody asks for any more.
      await expect.poll(() => node.endpoints().length, { timeout: 20_000 }).toBe(1);
      await expect.poll(() => node.endpoints().length, { timeout: 40_000 }).toBe(0);
      await whole();
    });

    test("peers 10: the deletion during DEL: success, durable, and done later", async () => {
      await node.cni("ADD", "a", { netns });
      {
        using hang = node.stubs.hns.fault({ call: "HcnDeleteEndpoint", times: 1, holdMs: "until released" });
        expect((await node.cni("DEL", "a", { netns, conf })).t).toBe("ok");
        expect(hang.hits).toBe(1);
        expect((await node.leases()).map(({ state }) => state)).toEqual(["releasing"]);
      }
      expect([await node.disagreements(30_000), node.endpoints()]).toEqual([[], []]);
    });
  });

  test("a plugin that is killed in mid-ADD leaves nothing that its DEL does not end", async () => {
    {
      using hang = node.stubs.hns.fault({ call: "HcnCreateEndpoint", times: 1, holdMs: "until released" });
      const plugin = node.startPlugin("ADD", "a", { netns });
      await hang.hit();
      plugin.kill("SIGKILL");
      await plugin.ended;
    }
    expect((await node.cni("DEL", "a", { netns })).t).toBe("ok");
    expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
    await whole();
  });

  describe("an agent that is killed", () => {
    test.each(["HcnOpenEndpoint", "HcnCreateEndpoint", "HcnModifyNamespace"])(
      "peers 12: in %s of an ADD leaves nothing that the next does not mend",
      async (call) => {
        {
          using hang = node.stubs.hns.fault({ call, times: 1, holdMs: "until released" });
          const given = node.cni("ADD", "a", { netns });
          await hang.hit();
          await node.stop(true);
          expect((await given).t).toBe("error");
        }
        await node.start();
        expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
        await whole();
      },
      90_000,
    );

    test("in a DEL leaves the rest to the next", async () => {
      await node.cni("ADD", "a", { netns });
      {
        using hang = node.stubs.hns.fault({ call: "HcnDeleteEndpoint", times: 1, holdMs: "until released" });
        const given = node.cni("DEL", "a", { netns });
        await hang.hit();
        await node.stop(true);
        expect((await given).t).toBe("ok");
      }
      await node.start();
      expect([await node.disagreements(), node.endpoints()]).toEqual([[], []]);
    });
  });
});

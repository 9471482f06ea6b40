import { afterAll, beforeAll, expect, test } from "vitest";
import type { KindAnswer } from "../../fakes/container-kinds.ts";
import { PacketFilter } from "../../fakes/hns/acls.ts";
import { PolicyControllerDouble } from "../../fakes/policy-controller.ts";
import { addresses, computed, gone, patched, policy, targets } from "../../fakes/policy-events.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { addressesOf, WindowsNode } from "./windows-node.ts";

const client = "10.9.7.7";
const outside = "1.2.3.4";
const waitMs = 1_000;

const clients = addresses("clients", `y/client ${client}`);
const servers = targets("servers", "x/server");
const web = policy("web", "servers", [{ groups: ["clients"], ports: ["TCP/80"] }]);

describeWine("network policies with HNS alone", (wine) => {
  const stack = new AsyncDisposableStack();
  let node: WindowsNode;
  let controller: PolicyControllerDouble;
  const start = (): ReturnType<WindowsNode["start"]> =>
    node.start({ type: "L2Bridge" }, { policies: { controller: controller.url, token: "C:\\token", waitMs } });

  beforeAll(async () => {
    controller = stack.use(await PolicyControllerDouble.start());
    controller.state = [clients, servers, web, computed("x/server"), computed("x/other")];
    wine.prefix.write("C:\\token", "a token");
    node = stack.use(await WindowsNode.make(wine.prefix));
    await start();
  });
  afterAll(() => stack.disposeAsync());

  const add = (name: string, netns = node.stubs.hns.newNamespace()): Promise<KindAnswer> =>
    node.cni("ADD", name, {
      netns,
      args: `IgnoreUnknown=1;K8S_POD_NAMESPACE=x;K8S_POD_NAME=${name};K8S_POD_UID=x/${name}`,
    });
  const addressOf = (name: string): string => {
    const endpoint = node.endpoints().find((each) => String(each["Name"]).startsWith(`${name}-`));
    return endpoint === undefined ? "" : (addressesOf(endpoint)[0] ?? "");
  };
  const opens = (source: string, destination: string, port: number): boolean =>
    new PacketFilter(node.stubs.hns.store).opens(source, destination, "TCP", port);
  /** Of a pod: may the client reach it at 80, at 81, may the world, may it reach the world. */
  const verdicts = (name: string): readonly boolean[] => {
    const own = addressOf(name);
    return [opens(client, own, 80), opens(client, own, 81), opens(outside, own, 80), opens(own, outside, 80)];
  };
  const changes = (): number => node.stubs.hns.count("HcnModifyEndpoint");

  test("a pod has its policies before it enters its sandbox, is closed until then, and its node reaches it", async () => {
    const seen: unknown[] = [];
    using _rules = node.stubs.hns.fault({ call: "HcnModifyEndpoint", meanwhile: () => seen.push(verdicts("server")) });
    using _enters = node.stubs.hns.fault({
      call: "HcnModifyNamespace",
      meanwhile: () => seen.push(verdicts("server")),
    });
    expect(await add("server")).toMatchObject({ t: "ok" });
    // It may be known before it comes, or while it starts.
    expect(seen.slice(0, 1)).toEqual([[false, false, false, expect.any(Boolean)]]);
    expect(seen.every((each) => (each as boolean[]).slice(1, 3).every((passes) => !passes))).toBe(true);
    expect(verdicts("server")).toEqual([true, false, false, true]);
    expect([opens("192.168.1.5", addressOf("server"), 81), opens("10.9.0.1", addressOf("server"), 81)]).toEqual([
      true,
      true,
    ]);
  });

  test("a pod that no policy isolates is open, and one that the controller does not know stays closed", async () => {
    expect(await add("other")).toMatchObject({ t: "ok" });
    expect(verdicts("other")).toEqual([true, true, true, true]);
    expect(await add("unknown")).toMatchObject({ t: "ok" });
    expect(verdicts("unknown")).toEqual([false, false, false, false]);
    controller.tell(computed("x/unknown"));
    await expect.poll(() => verdicts("unknown")).toEqual([true, true, true, true]);
  });

  test("a change is one request for each pod that it concerns", async () => {
    const before = changes();
    controller.tell(patched("AddressGroup", "clients", [`y/client ${outside}`], [`y/client ${client}`]));
    await expect.poll(() => verdicts("server")).toEqual([false, false, true, true]);
    controller.tell(gone(web));
    await expect.poll(() => verdicts("server")).toEqual([true, true, true, true]);
    expect(changes()).toBe(before + 2);
    controller.tell(clients, web);
    await expect.poll(() => verdicts("server")).toEqual([true, false, false, true]);
  });

  test("an agent that starts changes nothing where all is as it was, after a kill and without a controller too", async () => {
    // What is known is written within seconds, and at the end.
    await node.stop();
    controller.refusal = 503;
    const before = changes();
    for (const kill of [true, false]) {
      await start();
      expect([changes(), verdicts("server")]).toEqual([before, [true, false, false, true]]);
      await node.stop(kill);
    }
    await start();
    expect(await add("late")).toMatchObject({ t: "ok" });
    expect(verdicts("late")).toEqual([false, false, false, false]);
    controller.state = [...controller.state, computed("x/unknown"), computed("x/late")];
    controller.refusal = undefined;
    await expect.poll(() => verdicts("late"), { timeout: 60_000 }).toEqual([true, true, true, true]);
    expect(verdicts("server")).toEqual([true, false, false, true]);
  }, 180_000);

  test("whichever call of a change is an agent's last: the next has all in force, and nothing is open meanwhile", async () => {
    const closing = policy("web", "servers", [{}]);
    const opened = controller.state;
    // Open, query; open, modify; open, query.
    const lasts = [...[0, 1, 2, 3, 4, 5].map((skip) => ({ skip, effectFirst: true })), { skip: 3, effectFirst: false }];
    for (const last of lasts) {
      controller.state = opened;
      controller.tell(clients, web);
      await expect.poll(() => verdicts("server"), { timeout: 20_000 }).toEqual([true, false, false, true]);
      {
        using hang = node.stubs.hns.fault({ ...last, call: "*", times: 1, holdMs: "until released" });
        controller.state = opened.map((told) => (told === web ? closing : told));
        controller.tell(closing);
        await hang.hit();
        await node.stop(true);
      }
      expect([last, verdicts("server").slice(1, 3)]).toEqual([last, [false, false]]);
      await start();
      await expect.poll(() => verdicts("server"), { timeout: 20_000 }).toEqual([false, false, false, true]);
    }
    controller.state = opened;
  }, 300_000);

  test("while HNS takes no ACLs an ADD is refused, its endpoint closed and in no sandbox; what stood stays", async () => {
    controller.tell(clients, web, computed("x/new"), patched("AppliedToGroup", "servers", ["x/new"]));
    await expect.poll(() => verdicts("server"), { timeout: 20_000 }).toEqual([true, false, false, true]);
    const netns = node.stubs.hns.newNamespace();
    {
      using _refused = node.stubs.hns.fault({ call: "HcnModifyEndpoint", pretends: true });
      expect(await add("new", netns)).toMatchObject({ t: "error", code: 102 });
    }
    expect(verdicts("server")).toEqual([true, false, false, true]);
    expect(await add("new", netns)).toMatchObject({ t: "ok" });
    expect(verdicts("new")).toEqual([true, false, false, true]);
  });

  test("everything goes with the pods", async () => {
    for (const name of ["server", "other", "unknown", "late", "new"])
      expect(await node.cni("DEL", name)).toMatchObject({ t: "ok" });
    expect([node.endpoints(), await node.disagreements()]).toEqual([[], []]);
  });
});

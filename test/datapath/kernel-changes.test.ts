import { afterAll, beforeAll, expect, test } from "vitest";
import type { DataPath } from "../../agent/datapath/datapath.ts";
import { addRoute, deleteRoute, Kernel, readChange } from "../../agent/protocols/netlink/mod.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { cidr, ip, openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";

describeWith("what the kernel says of changes", ["root", "nft"], () => {
  const open = new AsyncDisposableStack();
  const kernel = open.use(new Kernel());
  let sandbox: NetworkSandbox;
  let dataPath: DataPath;

  beforeAll(async () => {
    sandbox = open.use(await NetworkSandbox.enter("pt-kc-"));
    dataPath = open.use(openDataPath());
    await dataPath.start();
  });
  afterAll(() => open.disposeAsync());

  const route = { dst: cidr("10.99.0.0/24"), gateway: ip("10.77.0.9"), protocol: 0x70 };

  test("tells whether it was a socket of ours that took a route away", async () => {
    using changes = kernel.openLinkChanges();
    using socket = kernel.openSocket();
    const heard = (): readonly boolean[] => {
      const own: boolean[] = [];
      expect(
        changes.drain((message) => {
          if (readChange(message)?.t === "route-gone") own.push(kernel.isOwn(message));
        }),
      ).toBe(false);
      return own;
    };
    // A route over a bridge without a port is there all the same.
    socket.run(addRoute(route));
    socket.run(deleteRoute(route));
    expect(heard()).toEqual([true]);
    socket.run(addRoute(route));
    await sandbox.node("ip route del 10.99.0.0/24");
    expect(heard()).toEqual([false]);
  });

  test("says that it had no room for all of it, once, and goes on", async () => {
    using changes = kernel.openLinkChanges();
    using namespace = NetworkNamespace.current();
    await namespace.ip(...Array.from({ length: 8_000 }, (_, i) => `link set lo mtu ${60_000 - i}`));
    expect(changes.drain(() => undefined)).toBe(true);
    let heard = 0;
    await sandbox.node("ip link set lo mtu 65000");
    expect(changes.drain(() => heard++)).toBe(false);
    expect(heard).toBeGreaterThan(0);
  });

  test("pods that come and go are no news; what somebody takes away is", async () => {
    const pods = [await sandbox.addPod(), await sandbox.addPod()];
    let looks = 0;
    await using _watch = dataPath.watch?.(async () => void looks++);
    for (let round = 0; round < 5; round++) {
      for (const [i, pod] of pods.entries()) await dataPath.attach(requestFor(`s${i}`, pod, 10 + i));
      for (const [i] of pods.entries()) await dataPath.detach(ownerOf(`s${i}`));
    }
    // Some reads of what has come.
    await Bun.sleep(1_000);
    expect(looks).toBe(0);
    await sandbox.node("nft delete table bridge pipette-ptc0");
    await expect.poll(() => looks).toBe(1);
    await sandbox.node("ip addr del 10.77.0.1/24 dev ptc0");
    await expect.poll(() => looks).toBe(2);
  });
});

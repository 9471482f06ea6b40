import { execFileSync } from "node:child_process";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { ensureBridge, missingFromBridge } from "../../agent/datapath/bridge/gateway-bridge.ts";
import { declaredMacs } from "../../agent/datapath/bridge/guarded-ports.ts";
import { findHostLink, findLink, peerAddresses } from "../../agent/datapath/linux/host-links.ts";
import { PodPairs } from "../../agent/datapath/linux/pod-pairs.ts";
import type { Link, NetlinkSocket } from "../../agent/protocols/netlink/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, network, openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";

/** Interfaces end with their pods at any moment: what reads by an index has to bear that it is nobody's any more. */
describeWith("what is gone between a look and the next", ["root"], () => {
  let sandbox: NetworkSandbox;
  let open: AsyncDisposableStack;
  let pairs: PodPairs;
  let host: Link;
  let pod: string;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-gb-");
  });
  beforeEach(async () => {
    open = new AsyncDisposableStack();
    const dataPath = open.use(openDataPath());
    await dataPath.start();
    pod = await sandbox.addPod();
    await dataPath.attach(requestFor("a", pod, 10));
    pairs = open.use(new PodPairs(createLogger("error", () => undefined)));
    host = findHostLink(pairs.tools.socket, ownerOf("a"))!;
  });
  afterEach(async () => {
    await open.disposeAsync();
    for (const link of [host.name, bridgeName]) await sandbox.node(`ip link del ${link}`).catch(() => undefined);
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());

  /** Has this happen right before the next dump of the pairs' socket. */
  function beforeNextDump(what: () => void): void {
    const { socket } = pairs.tools;
    const dump: NetlinkSocket["dump"] = socket.dump.bind(socket);
    socket.dump = (message, read) => {
      socket.dump = dump;
      what();
      return dump(message, read);
    };
  }
  const ip = (...words: readonly string[]): void => void execFileSync("ip", words);

  test("an interface: it has no addresses", () => {
    expect(pairs.addresses(ownerOf("a"), network)).toHaveLength(2);
    beforeNextDump(() => ip("link", "del", host.name));
    expect(pairs.addresses(ownerOf("a"), network)).toEqual([]);
    expect(pairs.podMac(host)).toBeUndefined();
  });

  test("a namespace: nothing is known of what was in it", async () => {
    expect(pairs.podMac(host)).toBeDefined();
    expect(peerAddresses(pairs.tools.socket, host)).toHaveLength(3);
    await sandbox.removePod(pod);
    await expect.poll(() => findLink(pairs.tools.socket, { index: host.index })).toBeUndefined();
    // As an agent that saw the link before would ask: its peer's namespace is nobody's.
    expect([pairs.podMac(host), peerAddresses(pairs.tools.socket, host)]).toEqual([undefined, undefined]);
  });

  test("a bridge: no port has a MAC declared there, and it lacks its gateways", () => {
    const { socket } = pairs.tools;
    const { link: bridge } = ensureBridge(socket, network);
    expect([...declaredMacs(pairs, bridge).keys()]).toEqual([host.index]);
    expect(missingFromBridge(socket, network)).toEqual([]);
    beforeNextDump(() => ip("link", "del", bridgeName));
    expect(missingFromBridge(socket, network)).toEqual([
      `the bridge "${bridgeName}" lacks the gateway address "10.77.0.1/24"`,
      `the bridge "${bridgeName}" lacks the gateway address "fd77::1/64"`,
    ]);
    expect([...declaredMacs(pairs, bridge)]).toEqual([]);
  });

  test("a pod's own end, while it is checked: its addresses are missing", async () => {
    const dataPath = open.use(openDataPath());
    await dataPath.start();
    const result = await dataPath.attach(requestFor("a", pod, 10));
    const kernel = pairs.tools.kernel;
    const openSocketIn = kernel.openSocketIn.bind(kernel);
    kernel.openSocketIn = (namespace) => {
      const socket = openSocketIn(namespace);
      const dump: NetlinkSocket["dump"] = socket.dump.bind(socket);
      socket.dump = (message, read) => {
        if (message.action().includes("addresses")) ip("link", "del", host.name);
        return dump(message, read);
      };
      return socket;
    };
    expect(() => pairs.check(ownerOf("a"), pod, result, () => undefined)).toThrow(
      expect.objectContaining({
        code: 103,
        message: expect.stringContaining('"10.77.0.10/24" of "eth0": it is missing'),
      }),
    );
  });
});

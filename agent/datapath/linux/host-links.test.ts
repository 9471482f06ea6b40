import { beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { NodeInMemory } from "../../../test/fakes/netlink/kernel.ts";
import { Refusal } from "../../../test/fakes/netlink/messages.ts";
import { Errno, NetlinkError, type NetlinkSocket } from "../../protocols/netlink/mod.ts";
import {
  findHostLink,
  findLink,
  findNamed,
  linkGroup,
  peerAddresses,
  Sweeper,
  takeOutOfService,
  undefinedIfGone,
} from "./host-links.ts";
import { formatAlias, ownerAltName } from "./names.ts";

let node: NodeInMemory;
let socket: NetlinkSocket;
beforeEach(() => {
  node = new NodeInMemory();
  socket = node.socketIn(node.own) as unknown as NetlinkSocket;
});

const owner = { network: "pods", sandboxId: "a", ifname: "eth0" };
const alias = formatAlias({ owner, ownLease: true });

describe("an interface that is gone", () => {
  test.each([
    ["the interface", Errno.ENODEV, undefined, undefined],
    ["its namespace", Errno.EINVAL, 7, undefined],
    ["a request of ours that is wrong", Errno.EINVAL, undefined, "EINVAL"],
    ["something else", Errno.EPERM, 7, "EPERM"],
  ])("is nothing, and any other answer an error: %s", (_name, errno, namespaceId, error) => {
    const ask = () =>
      undefinedIfGone(() => {
        throw new NetlinkError("ask", errno);
      }, namespaceId);
    if (error === undefined) expect(ask()).toBeUndefined();
    else expect(ask).toThrow(error);
  });

  test("has no addresses, and no other end", () => {
    const pod = node.addPod("/run/netns/a");
    const peer = pod.add({ name: "eth0" });
    const other = pod.add({ name: "eth1" });
    for (const { index } of [peer, other])
      pod.addresses.push({ index, family: 2, prefix: 24, ip: Uint8Array.of(10, 77, 0, index) });
    const of = (peerIndex?: number, peerNamespaceId?: number) =>
      peerAddresses(socket, { peerIndex, peerNamespaceId } as never)?.map(({ address }) => address.prefix);
    expect(of(peer.index, pod.id)).toEqual([24]);
    expect([of(99, pod.id), of(peer.index, 999), of(), of(peer.index), of(undefined, pod.id)]).toEqual(
      Array(5).fill(undefined),
    );
  });
});

describe("an owner's interface", () => {
  test("is found by its second name where its alias agrees, else by that alone", () => {
    const theirs = node.own.add({ name: "v0", altNames: new Set([ownerAltName(owner)]) });
    expect([findNamed(socket, owner), findHostLink(socket, owner)]).toEqual([undefined, undefined]);
    const ours = node.own.add({ name: "v1", alias });
    expect([findNamed(socket, owner), findHostLink(socket, owner)?.index]).toEqual([undefined, ours.index]);
    expect(findHostLink(socket, { ...owner, ifname: "net1" })).toBeUndefined();
    theirs.alias = alias;
    expect([findNamed(socket, owner)?.index, findHostLink(socket, owner)?.index]).toEqual([theirs.index, theirs.index]);
  });
});

describe("an interface that is taken out of service", () => {
  test("reaches nobody any more: it is down, off its bridge, and to be deleted", () => {
    const bridge = node.own.add({ name: "br0" });
    const port = { up: true, master: bridge.index };
    const ofBridge = node.own.add({ ...port, name: "v0", port: new Map([[8, 1]]) });
    // A port of Open vSwitch's kernel module, which it cannot be taken off.
    const ofSwitch = node.own.add({ ...port, name: "v1" });
    const all = [ofBridge, ofSwitch].map(({ name }) => findLink(socket, { name })!);
    for (const link of all) takeOutOfService(socket, link);
    const left = { up: false, group: linkGroup.toDelete };
    expect(ofBridge).toMatchObject({ ...left, master: 0 });
    expect(ofSwitch).toMatchObject({ ...left, master: bridge.index });
    node.own.remove(ofBridge.index);
    expect(takeOutOfService(socket, all[0]!)).toBeUndefined();
    node.before = () => {
      throw new Refusal(Errno.EPERM);
    };
    expect(() => takeOutOfService(socket, all[1]!)).toThrow("EPERM");
  });
});

describe("marked interfaces", () => {
  const requests: PromiseWithResolvers<void>[] = [];
  const lines: string[] = [];
  const posting = { post: () => requests.at(requests.push(Promise.withResolvers<void>()) - 1)!.promise };
  let sweeper: Sweeper;
  beforeEach(() => {
    requests.length = 0;
    lines.length = 0;
    const logger = createLogger("info", (line) => lines.push(JSON.parse(line).error));
    sweeper = new Sweeper(posting as unknown as NetlinkSocket, linkGroup.toDelete, logger);
  });
  const untilAsked = (times: number) => expect.poll(() => requests.length).toBe(times);

  test("are deleted by one request at a time, those that come meanwhile by the next one together", async () => {
    const [first, done] = [sweeper.sweep(), [] as string[]];
    void first.then(() => done.push("first"));
    await untilAsked(1);
    const others = [sweeper.sweep(), sweeper.sweep()];
    for (const other of others) void other.then(() => done.push("other"));
    await Bun.sleep(0);
    expect([requests.length, done]).toEqual([1, []]);
    requests[0]!.resolve();
    await untilAsked(2);
    expect(done).toEqual(["first"]);
    requests[1]!.resolve();
    await Promise.all(others);
    expect([done, requests.length, lines]).toEqual([["first", "other", "other"], 2, []]);
  });

  test.each([
    ["none is left", Errno.ENODEV, []],
    ["the kernel refuses", Errno.EPERM, [expect.stringContaining("EPERM")]],
  ])("fail nobody where %s, and go with the next request", async (_name, errno, said) => {
    const swept = sweeper.sweep();
    await untilAsked(1);
    requests[0]!.reject(new NetlinkError("delete", errno));
    await swept;
    expect(lines).toEqual(said);
    const again = sweeper.sweep();
    await untilAsked(2);
    requests[1]!.resolve();
    await again;
  });
});

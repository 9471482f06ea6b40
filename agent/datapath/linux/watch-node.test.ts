import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import {
  addressGone,
  forwardingSet,
  linkChanged,
  linkGone,
  portLeft,
  routeGone,
  tableGone,
} from "../../../test/fakes/netlink/changes.ts";
import { Errno, NetlinkError } from "../../protocols/netlink/mod.ts";
import { linkGroup } from "./host-links.ts";
import { routeProtocol } from "./node-routes.ts";
import { watchNode } from "./watch-node.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

type RawMessage = ReturnType<typeof linkChanged>;

const [up, down] = [linkChanged(7, { isUp: true }), linkChanged(7, { isUp: false })];
const address = addressGone(7);

/** A watched node whose kernel says what is put into `said`. */
function watched(subscribe: () => void = () => undefined) {
  const said: RawMessage[] = [];
  const logged: string[] = [];
  const node = { said, logged, looks: 0, missed: false, reading: (): void => undefined };
  const queue = (messages: RawMessage[]) => ({
    drain(visit: (message: RawMessage) => void) {
      node.reading();
      for (const message of messages.splice(0)) visit(message);
      return node.missed;
    },
    [Symbol.dispose]: () => undefined,
  });
  const kernel = {
    openLinkChanges: () => queue(said),
    openPacketFilterChanges: () => {
      subscribe();
      return queue([]);
    },
    isOwn: ({ port }: RawMessage) => port === 1,
  };
  const watch = watchNode({
    kernel: kernel as never,
    tables: ["ours"],
    isPort: (index) => index === 7,
    look: async () => void node.looks++,
    logger: createLogger("info", (line) => logged.push(JSON.parse(line).message)),
  });
  return Object.assign(node, { [Symbol.asyncDispose]: () => watch[Symbol.asyncDispose]() });
}

/** The kernel's messages are read four times in a second. */
const readMs = 250;

test.each<readonly [string, readonly RawMessage[], number]>([
  ["nothing", [], 0],
  ["an address that is gone", [address], 1],
  ["a route of ours that is gone", [routeGone(routeProtocol)], 1],
  ["a route of others that is gone", [routeGone(routeProtocol + 1)], 0],
  ["forwarding that is turned off", [forwardingSet(0)], 1],
  ["forwarding that is turned on", [forwardingSet(1)], 0],
  ["our packet rules", [tableGone("ours")], 1],
  ["packet rules of others", [tableGone("theirs")], 0],
  ["a pod's port that has left its bridge", [portLeft(7)], 1],
  ["another port that has left a bridge", [portLeft(8)], 0],
  ["an interface that is up", [up], 0],
  ["an interface that goes down", [down], 1],
  ["an interface that is gone", [linkGone(7)], 1],
  ["one of ours that is being made", [linkChanged(7, { group: linkGroup.beingMade })], 0],
  ["one of ours that is being deleted", [linkGone(7, { group: linkGroup.toDelete })], 0],
  ["what this process has done itself", [{ ...address, port: 1 }], 0],
  ["what matters among what does not", [up, address, up], 1],
])("%s", async (_name, messages, looks) => {
  await using node = watched();
  node.said.push(...messages);
  await vi.advanceTimersByTimeAsync(readMs);
  expect(node.looks).toBe(looks);
});

test("an interface is looked after when it goes down and when it comes up again, and not while it stays so", async () => {
  await using node = watched();
  const looksAfter = async (message: RawMessage): Promise<number> => {
    const before = node.looks;
    node.said.push(message);
    // A loop that anybody can trigger rests after each look.
    await vi.advanceTimersByTimeAsync(20_000);
    return node.looks - before;
  };
  const seen: number[] = [];
  for (const message of [down, down, up, up, down, linkGone(7), up]) seen.push(await looksAfter(message));
  expect(seen).toEqual([1, 0, 1, 0, 1, 1, 0]);
});

test("messages that were lost are a change, and without any the node is looked at every minute", async () => {
  await using node = watched();
  await vi.advanceTimersByTimeAsync(59_000);
  expect(node.looks).toBe(0);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(node.looks).toBe(1);
  node.missed = true;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(node.looks).toBeGreaterThan(1);
});

test("what cannot be read is said once, and what the kernel does not tell is looked for all the same", async () => {
  await using node = watched();
  node.reading = () => {
    throw new NetlinkError("read", Errno.EPERM);
  };
  await vi.advanceTimersByTimeAsync(60_000);
  expect([node.looks, node.logged]).toEqual([1, ["changes on the node are not heard at once"]]);
  await using deaf = watched(() => {
    throw new NetlinkError("subscribe", Errno.EPERM);
  });
  await vi.advanceTimersByTimeAsync(60_000);
  expect([deaf.looks, deaf.logged]).toEqual([1, ["changes on the node are seen within a minute only"]]);
});

test("nothing is looked at once the watch is over", async () => {
  const node = watched();
  await node[Symbol.asyncDispose]();
  node.said.push(address);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(node.looks).toBe(0);
});

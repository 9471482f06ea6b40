import { describe, expect, test } from "vitest";
import {
  type Element,
  Errno,
  type Message,
  NetlinkError,
  type NetlinkSocket,
  type PacketSet,
} from "../../protocols/netlink/mod.ts";
import { lackingElements, putElements, standingElements, takeElements } from "./set-elements.ts";

const set = (name: string): PacketSet => ({ table: { family: "inet", name: "t" }, name }) as unknown as PacketSet;
const [pods, ports] = [set("pods"), set("ports")];
const numbered = (of: PacketSet, count: number): readonly Element[] =>
  Array.from({ length: count }, (_, i) => ({ set: of, key: Uint8Array.of(i >> 8, i & 255) }));
const gone = (): NetlinkError => new NetlinkError("ask", Errno.ENOENT);

/** A socket that hears requests, each as the actions of its messages, and refuses them as it is told to. */
function socketWith(refuse: (messages: readonly Message[], request: number) => Error | undefined = () => undefined) {
  const requests: string[][] = [];
  const transact = (messages: readonly Message[]): void => {
    requests.push(messages.map(({ action }) => action()));
    const error = refuse(messages, requests.length);
    if (error !== undefined) throw error;
  };
  return { requests, socket: { transact } as unknown as NetlinkSocket };
}

describe("elements are put", () => {
  test.each([
    [0, 0],
    [1, 1],
    [200, 1],
    [201, 2],
    [400, 2],
  ])("%i of them in %i requests", (count, wanted) => {
    const { requests, socket } = socketWith();
    putElements(socket, numbered(pods, count));
    expect(requests).toHaveLength(wanted);
  });

  test("by one message for each set, and a refusal is an error", () => {
    const { requests, socket } = socketWith();
    putElements(socket, [...numbered(pods, 2), ...numbered(ports, 3), ...numbered(pods, 1)]);
    expect(requests.map((messages) => messages.length)).toEqual([2]);
    expect(() => putElements(socketWith(gone).socket, numbered(pods, 1))).toThrow("ENOENT");
  });
});

describe("elements are taken", () => {
  test("together, and one by one where one of them is missing", () => {
    const [first, second, third] = numbered(pods, 3) as [Element, Element, Element];
    const { requests, socket } = socketWith((_messages, request) => (request === 1 ? gone() : undefined));
    const asked: number[] = [];
    const get = (): boolean => {
      asked.push(asked.length);
      if (asked.length === 2) throw gone();
      return true;
    };
    takeElements({ ...socket, get } as unknown as NetlinkSocket, [first, second, third]);
    expect([requests.length, asked.length]).toEqual([3, 3]);
    const { requests: once, socket: sound } = socketWith();
    takeElements(sound, [first, second]);
    expect(once).toHaveLength(1);
  });

  test("and any other refusal is an error", () => {
    const { socket } = socketWith(() => new NetlinkError("take", Errno.EPERM));
    expect(() => takeElements(socket, numbered(pods, 1))).toThrow("EPERM");
  });
});

test("what stands is read set by set, and a set that is missing has nothing", () => {
  const answers = [[[Uint8Array.of(1)], [Uint8Array.of(2), Uint8Array.of(3)]], gone()];
  const dump = () => {
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const standing = standingElements({ dump } as unknown as NetlinkSocket, [pods, ports]);
  expect(standing.map(({ set: of, key }) => [of.name, ...key])).toEqual([
    ["pods", 1],
    ["pods", 2],
    ["pods", 3],
  ]);
  const refusing = (error: Error) =>
    ({
      get: () => {
        throw error;
      },
    }) as unknown as NetlinkSocket;
  const all = numbered(pods, 2);
  expect(lackingElements(refusing(gone()), all)).toEqual(all);
  expect(() => lackingElements(refusing(new NetlinkError("ask", Errno.EPERM)), all)).toThrow("EPERM");
  expect(lackingElements({ get: () => true } as unknown as NetlinkSocket, all)).toEqual([]);
});

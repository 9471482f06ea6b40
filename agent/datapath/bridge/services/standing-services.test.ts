import { expect, test } from "vitest";
import { ipOf } from "../../../../shared/net/ip.ts";
import {
  type Element,
  elementOf,
  ipBytes,
  listElements,
  type Message,
  type NetlinkSocket,
  readElements,
} from "../../../protocols/netlink/mod.ts";
import { serviceSets, serviceTable } from "./service-sets.ts";
import { StandingServices } from "./standing-services.ts";

test("what an earlier agent left goes in transactions of a bounded size, however much it is, and goes on where it stopped", async () => {
  const table = serviceTable("pipette0");
  const { endpoints } = serviceSets(table, 4).byAddress;
  const left: Element[] = Array.from({ length: 5_000 }, (_, i) => ({
    ...elementOf(
      endpoints,
      ipBytes(ipOf(4, 0x0a60_0001n)),
      Uint8Array.of(6),
      Uint8Array.of(0, 80),
      new Uint8Array(Uint32Array.of(i).buffer),
    ),
    value: Uint8Array.of(10, 0, 0, 1, 0, 80),
  }));
  const { action } = listElements(endpoints);
  const dumpInTurns = async (message: Message, read: unknown, take: (found: unknown[]) => void): Promise<void> =>
    take(read === readElements && message.action() === action() ? [left] : []);
  const socket = { dumpInTurns, dump: () => [] } as unknown as NetlinkSocket;
  const standing = await StandingServices.read(socket, table, true, new Set());
  const takeAway = () => standing.stepsTo(new Map(), 500);
  const [first] = takeAway();
  const steps = [...takeAway()];
  expect(steps).toHaveLength(9);
  // All as large as the first.
  const sizes = [first, ...steps].flatMap((step) => step?.transactions.map((messages) => messages.length) ?? []);
  expect([sizes.length, new Set(sizes).size]).toEqual([10, 1]);
  expect([...takeAway()]).toEqual([]);
});

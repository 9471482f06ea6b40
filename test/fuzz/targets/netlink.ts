import { readAddress } from "../../../agent/protocols/netlink/address.ts";
import { readPortMac } from "../../../agent/protocols/netlink/bridge-port.ts";
import { readLink } from "../../../agent/protocols/netlink/link.ts";
import {
  MalformedMessage,
  type RawMessage,
  readAnswer,
  readMessages,
} from "../../../agent/protocols/netlink/message-reader.ts";
import { readNamespaceId } from "../../../agent/protocols/netlink/namespace-id.ts";
import { readNeighbour } from "../../../agent/protocols/netlink/neighbour.ts";
import { readElementKeys } from "../../../agent/protocols/netlink/nftables/elements.ts";
import { readRuleCount } from "../../../agent/protocols/netlink/nftables/objects.ts";
import { readRoute } from "../../../agent/protocols/netlink/route.ts";
import { readWholeRoute, waysOf } from "../../../agent/protocols/netlink/route-move.ts";
import { bitsOf, firstOf, formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import type { Target } from "../engine/target.ts";
import { frameMutator, netlinkFrames } from "../mutate/frames.ts";

/** Everything that the agent makes of a message, whatever it had asked for. */
const readers: readonly ((message: RawMessage) => void)[] = [
  (message) => void readLink(message),
  (message) => usable(readAddress(message)?.address),
  (message) => {
    const route = readRoute(message);
    usable(route?.dst);
    for (const { gateway } of route?.hops ?? []) if (gateway !== undefined) formatIp(gateway);
  },
  (message) => void readNeighbour(message),
  (message) => void readNamespaceId(message),
  (message) => void readAnswer(message),
  (message) => void readPortMac(message),
  (message) => void readElementKeys(message),
  (message) => void readRuleCount(message),
  (message) => {
    const route = readWholeRoute(message);
    if (route !== undefined) waysOf(route);
  },
];

/** An address that was read can be written, compared, and counted with. */
function usable(cidr: ReturnType<typeof parseCidr>): void {
  if (cidr === undefined) return;
  if (cidr.prefix > bitsOf(cidr.ip.family)) throw new Error(`A prefix of ${cidr.prefix} bits was read`);
  firstOf(cidr);
  const again = parseCidr(formatCidr(cidr));
  // ::ffff:10.0.0.1 is read as IPv4, as everywhere else.
  if (again === undefined && parseIp(formatIp(cidr.ip)) === undefined)
    throw new Error(`An address is written as ${formatCidr(cidr)}`);
}

function read(reader: (message: RawMessage) => void, datagram: Uint8Array): void {
  try {
    for (const message of readMessages(datagram)) reader(message);
  } catch (caught) {
    if (!(caught instanceof MalformedMessage)) throw caught;
  }
}

export const netlink: Target = {
  name: "netlink",
  what: "what the kernel answers",
  mutators: [frameMutator(netlinkFrames)],
  dictionary: ["\x10\x00\x00\x00", "\x08\x00\x01\x00", "\x04\x00", "\x00\x00", "\xff\xff", "veth\x00"],
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      for (const reader of readers) read(reader, input);
    },
  }),
};

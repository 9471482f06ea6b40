import { expect, test } from "vitest";
import { formatCidr, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { type Message, MessageWriter } from "../netlink/mod.ts";
import { changeMessages, joinParts, readDevicePart } from "./netlink-device.ts";

/** Without the header of netlink itself. */
function bodyOf(message: Message): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(4096));
  const writer = new MessageWriter(bytes);
  writer.message(message.type, 5, 1, message.body);
  return bytes.slice(16, writer.length);
}
const hexOf = (message: Message): string => Buffer.from(bodyOf(message)).toString("hex");

const key = (byte: number): string => Buffer.alloc(32, byte).toString("base64");

/** As linux/wireguard.h lays it out. */
test("the device comes first, then each peer in a message of its own", () => {
  const messages = changeMessages(30, "wg0", {
    privateKey: new Uint8Array(32).fill(7),
    listenPort: 51_820,
    peers: [
      { publicKey: key(2), remove: true },
      {
        publicKey: key(1),
        endpoint: { ip: parseIp("172.30.0.2")!, port: 51_820 },
        allowed: [parseCidr("10.1.2.0/24")!],
        keepaliveSeconds: 25,
      },
    ],
  });
  const name = "0800 0200 77673000"; // WGDEVICE_A_IFNAME
  const flat = (...parts: readonly string[]): string => parts.join("").replaceAll(" ", "");
  expect(messages.map(hexOf)).toEqual([
    flat("01 01 0000", name, "2400 0300", "07".repeat(32), "0600 0600 6cca 0000"),
    flat("01 01 0000", name, "3400 0880", "3000 0080", "2400 0100", "02".repeat(32), "0800 0300 01000000"),
    flat(
      "01 01 0000",
      name,
      "7000 0880", // WGDEVICE_A_PEERS
      "6c00 0080",
      ...["2400 0100", "01".repeat(32)],
      "0800 0300 02000000", // WGPEER_F_REPLACE_ALLOWEDIPS
      ...["1400 0400 0200 ca6c ac1e0002", "00".repeat(8)], // struct sockaddr_in
      "0600 0500 1900 0000",
      "2000 0980", // WGPEER_A_ALLOWEDIPS
      "1c00 0080 0600 0100 0200 0000 0800 0200 0a010200 0500 0300 18 000000",
    ),
  ]);
  expect(messages.every(({ type }) => type === 30)).toBe(true);
});

test("an answer is read as the change was written, and its parts are joined", () => {
  const allowed = ["10.1.2.0/24", "fd10::/64"].map((text) => parseCidr(text)!);
  const endpoint = { ip: parseIp("fd30::2")!, port: 51_820 };
  const part = (blocks: typeof allowed) =>
    readDevicePart({
      body: bodyOf(
        changeMessages(30, "wg0", {
          peers: [{ publicKey: key(1), endpoint, allowed: blocks, keepaliveSeconds: 25 }],
        })[0]!,
      ),
    });
  const whole = joinParts([part(allowed.slice(0, 1)), part(allowed.slice(1))]);
  expect(whole.peers).toHaveLength(1);
  expect(whole.peers[0]).toMatchObject({
    publicKey: key(1),
    handshakeAt: 0,
    keepaliveSeconds: 25,
    endpoint: { port: 51_820 },
  });
  expect(whole.peers[0]?.allowed.map(formatCidr)).toEqual(["10.1.2.0/24", "fd10::/64"]);
});

test("an answer that is cut short is refused, wherever", () => {
  const [message] = changeMessages(30, "wg0", { peers: [{ publicKey: key(1), allowed: [parseCidr("10.1.2.0/24")!] }] });
  const body = bodyOf(message!);
  for (let length = 0; length < body.length; length++) {
    try {
      readDevicePart({ body: body.subarray(0, length) });
    } catch (caught) {
      expect((caught as Error).name).toBe("MalformedMessage");
    }
  }
});

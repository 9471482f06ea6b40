import { expect, test } from "vitest";
import { formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { formatMac, parseMac } from "../../../shared/net/mac.ts";
import { addAddress, readAddress } from "./address.ts";
import { ipBytes, ipFromBytes } from "./bytes.ts";
import { createVeth, readLink } from "./link.ts";
import { Attributes, MalformedMessage, type RawMessage, readAnswer, readMessages } from "./message-reader.ts";
import { type Message, MessageWriter } from "./message-writer.ts";
import { addRoute, readRoute } from "./route.ts";
import { readWholeRoute } from "./route-move.ts";

function encode(message: Message, room = 4096): Uint8Array {
  const bytes = new Uint8Array(new ArrayBuffer(room));
  const writer = new MessageWriter(bytes);
  writer.message(message.type, 0x405, 7, message.body);
  return bytes.slice(0, writer.length);
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

const only = (datagram: Uint8Array): RawMessage => {
  const [first, ...rest] = [...readMessages(datagram)];
  if (first === undefined || rest.length > 0) throw new Error("Not one message");
  return first;
};

const veth = createVeth({
  host: { name: "web-1a2b3c", mac: Uint8Array.of(2, 0, 0, 0, 0, 1), master: 5, group: 9 },
  pod: { name: "eth0", mac: Uint8Array.of(2, 0, 0, 0, 0, 2), namespaceFd: 12 },
  mtu: 1400,
});

test("frames an address as the kernel's headers lay it out", () => {
  const message = encode(addAddress("eth0", 2, parseCidr("10.1.2.3/24")!));
  expect(hex(message)).toBe(
    [
      "30000000 1400 0504 07000000 00000000", // length, RTM_NEWADDR, flags, sequence, port
      "02 18 00 00 02000000", // AF_INET, /24, flags, scope, interface
      "0800 0200 0a010203", // IFA_LOCAL
      "0800 0100 0a010203", // IFA_ADDRESS
      "0800 0400 0a0102ff", // IFA_BROADCAST
    ]
      .join("")
      .replaceAll(" ", ""),
  );
});

test("pads attributes, and leaves the padding out of their lengths", () => {
  const body = only(encode(veth)).body.subarray(16);
  expect(hex(body.subarray(0, 16))).toBe("0f0003007765622d316132623363000008000400".slice(0, 32));
});

test("reads back what it writes: link, address, route", () => {
  const link = readLink(only(encode(veth)));
  expect(link).toMatchObject({ name: "web-1a2b3c", mtu: 1400, master: 5, group: 9, kind: "veth", up: false });
  expect(link.mac).toBe("02:00:00:00:00:01");
  const address = readAddress(only(encode(addAddress("eth0", 3, parseCidr("fd00::9/64")!))));
  expect(address).toMatchObject({ index: 3, ready: true });
  expect(formatCidr(address!.address)).toBe("fd00::9/64");
  const route = readRoute(
    only(encode(addRoute({ dst: parseCidr("::/0")!, gateway: parseIp("fd00::1")!, index: 2, table: 1000 }))),
  );
  expect(route).toMatchObject({ table: 1000, hops: [{ index: 2 }] });
  expect(formatIp(route!.hops[0]!.gateway!)).toBe("fd00::1");
});

test("a datagram cut anywhere inside is refused, never misread", () => {
  const whole = encode(veth);
  for (let length = 1; length < whole.length; length++) {
    expect(() => [...readMessages(whole.subarray(0, length))], `${length} bytes`).toThrow(MalformedMessage);
  }
});

test("attributes cut anywhere inside are refused or shorter, never longer", () => {
  const { body } = only(encode(veth));
  for (let length = 0; length < body.length; length++) {
    const cut: RawMessage = { type: 16, flags: 0, sequence: 1, port: 0, body: body.subarray(0, length) };
    try {
      expect(["", "web-1a2b3c"]).toContain(readLink(cut).name);
    } catch (caught) {
      expect(caught).toBeInstanceOf(MalformedMessage);
    }
  }
});

test.each([
  ["attribute length 0", "0000 0100"],
  ["attribute length 3", "0300 0100"],
  ["attribute length beyond the end", "0900 0100 00000000"],
  ["half a header", "0800"],
])("refuses %s", (_name, text) => {
  expect(() => new Attributes(Buffer.from(text.replaceAll(" ", ""), "hex"))).toThrow(MalformedMessage);
});

test("a number shorter than it should be is refused, not read beyond its end", () => {
  const attributes = new Attributes(Buffer.from("0600010001020000", "hex"));
  expect(() => attributes.u32(1)).toThrow(MalformedMessage);
});

test("random bytes end in an error or in objects, never in anything else", () => {
  let seed = 12345;
  const random = (): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) >>> 0;
    return seed >>> 16;
  };
  for (let round = 0; round < 3000; round++) {
    const body = Uint8Array.from({ length: random() % 80 }, () => random() & (round % 2 === 0 ? 0xff : 0x0f));
    const message: RawMessage = { type: round % 3, flags: 0x200 | (random() & 0x100), sequence: 1, port: 0, body };
    for (const read of [readLink, readAddress, readRoute, readAnswer]) {
      try {
        read(message);
      } catch (caught) {
        expect(caught).toBeInstanceOf(MalformedMessage);
      }
    }
  }
});

test("reads an error with the kernel's sentence, whether the request comes back whole or not", () => {
  const text = Buffer.from("nope\0");
  const tlv = Buffer.concat([Buffer.from([4 + text.length, 0, 1, 0]), text, Buffer.alloc(3)]);
  const errno = Buffer.from("efffffff", "hex"); // -17
  const inner = Buffer.alloc(20);
  inner.writeUInt32LE(20, 0);
  const whole = Buffer.concat([errno, inner, tlv]);
  const capped = Buffer.concat([errno, inner.subarray(0, 16), tlv]);
  const answer = { errno: 17, kernelText: "nope" };
  expect(readAnswer({ type: 2, flags: 0x200, sequence: 1, port: 0, body: whole })).toEqual(answer);
  expect(readAnswer({ type: 2, flags: 0x300, sequence: 1, port: 0, body: capped })).toEqual(answer);
  expect(readAnswer({ type: 2, flags: 0, sequence: 1, port: 0, body: Buffer.alloc(20) })).toEqual({
    errno: 0,
    kernelText: "",
  });
});

test("a request is the same wherever the buffer becomes too small for it, and whatever lay in that", () => {
  const message: Message = {
    action: () => "try",
    type: 16,
    body: (writer) => {
      writer.u32(1).u8x4(2, 3, 4, 5).attrU8(1, 5).attrU16(2, 6).attrU32(3, 7).attrU32Net(4, 8);
      writer
        .attrText(5, "abc")
        .attrText(6, "abcd")
        .attrBytes(7, Uint8Array.of(1, 2, 3, 4, 5))
        .attrIp(8, parseIp("::1")!);
      writer.begin(9).begin(10).attrU8(11, 12).end().end();
    },
  };
  const whole = encode(message);
  for (let room = 1; room < whole.length; room++) {
    const writer = new MessageWriter(new Uint8Array(new ArrayBuffer(room)).fill(0xff));
    writer.reset(4096);
    writer.message(message.type, 0x405, 7, message.body);
    expect(hex(writer.bytes.subarray(0, writer.length)), `${room} bytes`).toBe(hex(whole));
  }
  const dirty = new MessageWriter(new Uint8Array(new ArrayBuffer(4096)).fill(0xff));
  dirty.message(message.type, 0x405, 7, message.body);
  expect(hex(dirty.bytes.subarray(0, dirty.length))).toBe(hex(whole));
});

test("a request that does not fit is our own fault, and nothing is written behind the buffer", () => {
  expect(() => encode(veth, 64)).toThrow("longer than 64 bytes");
});

test("a name is the same as a text, also where it was written before", () => {
  const body = (write: (writer: MessageWriter) => void): Message => ({ action: () => "try", type: 16, body: write });
  const wanted = hex(encode(body((writer) => void writer.attrText(1, "pods-ä").attrText(2, "pods").attrU8(3, 4))));
  for (let time = 0; time < 2; time++) {
    const named = encode(body((writer) => void writer.attrName(1, "pods-ä").attrName(2, "pods").attrU8(3, 4)));
    expect(hex(named)).toBe(wanted);
  }
});

test("an attribute in an attribute is the same as both one after the other, also on memory that is not clean", () => {
  const encoded = (body: (writer: MessageWriter) => void): string => {
    const writer = new MessageWriter(new Uint8Array(new ArrayBuffer(256)).fill(0xff));
    writer.message(16, 0, 1, body);
    return hex(writer.bytes.subarray(0, writer.length));
  };
  for (let bytes = 0; bytes < 9; bytes++) {
    const value = new Uint8Array(bytes).fill(7);
    const wanted = encoded((writer) => void writer.begin(1).attrBytes(2, value).end().attrU8(3, 4));
    expect(encoded((writer) => void writer.attrNested(1, 2, value).attrU8(3, 4))).toBe(wanted);
  }
  const long = new Uint8Array(0x1_0000);
  expect(() =>
    encode({ action: () => "try", type: 16, body: (writer) => writer.attrNested(1, 2, long) }, 200_000),
  ).toThrow("has 65544 bytes");
});

test("an attribute that begins and does not end, or ends twice, is our own fault", () => {
  const body = (write: (writer: MessageWriter) => void): Message => ({ action: () => "try", type: 16, body: write });
  expect(() => encode(body((writer) => void writer.begin(1).attrU32(2, 3)))).toThrow("has no end");
  expect(() => encode(body((writer) => void writer.begin(1).end().end()))).toThrow("ends twice");
  expect(() => encode(body((writer) => void writer.end()))).toThrow("ends twice");
});

test("an attribute that is longer than its header can tell is our own fault", () => {
  const long = new Uint8Array(0x8000);
  const nested = (times: number): Message => ({
    action: () => "try",
    type: 16,
    body: (writer) => {
      writer.begin(1);
      for (let i = 0; i < times; i++) writer.attrBytes(2, long);
      writer.end();
    },
  });
  expect(() => encode(nested(1), 200_000)).not.toThrow();
  expect(() => encode(nested(2), 200_000)).toThrow("has 65548 bytes");
});

test("addresses and MACs to bytes and back", () => {
  for (const text of ["10.0.0.255", "255.255.255.255", "fd00::1", "::"]) {
    expect(formatIp(ipFromBytes(ipBytes(parseIp(text)!))!)).toBe(text);
  }
  expect(ipFromBytes(new Uint8Array(5))).toBeUndefined();
  expect(formatMac(parseMac("02-AB-00-ff-10-01")!)).toBe("02:ab:00:ff:10:01");
  for (const text of ["", "02:00:00:00:00", "02:00:00:00:00:0g", "02:00:00:00:00:00:00", "0200.0000.0001"]) {
    expect(parseMac(text), text).toBeUndefined();
  }
});

test("a prefix that no address of its family has is refused, not counted with", () => {
  const address = only(encode(addAddress("eth0", 3, parseCidr("10.1.2.3/24")!)));
  address.body[1] = 33;
  expect(() => readAddress(address)).toThrow("has 33 bits, wanted 32 at most");
  const route = only(encode(addRoute({ dst: parseCidr("fd00::/64")!, index: 2 })));
  route.body[1] = 129;
  expect(() => readRoute(route)).toThrow(MalformedMessage);
  expect(() => readWholeRoute(route)).toThrow(MalformedMessage);
});

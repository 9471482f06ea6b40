import { expect, test } from "vitest";
import { formatCidr, formatIp, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { newPrivateKey, publicKeyOf } from "./keys.ts";
import { readAnswer, readDevice, setRequest } from "./uapi-text.ts";

const key = Buffer.alloc(32, 1).toString("base64");
const hex = "01".repeat(32);

test("a change is written with who goes before who comes, and a greeting last", () => {
  const text = setRequest({
    privateKey: new Uint8Array(32).fill(7),
    listenPort: 51_820,
    peers: [
      { publicKey: Buffer.alloc(32, 2).toString("base64"), remove: true },
      {
        publicKey: key,
        endpoint: { ip: parseIp("fd30::2")!, port: 51_820 },
        allowed: [parseCidr("10.1.2.0/24")!, parseCidr("fd10::/64")!],
        keepaliveSeconds: 25,
      },
    ],
  });
  expect(text.split("\n")).toEqual([
    "set=1",
    `private_key=${"07".repeat(32)}`,
    "listen_port=51820",
    `public_key=${"02".repeat(32)}`,
    "remove=true",
    `public_key=${hex}`,
    "endpoint=[fd30::2]:51820",
    "replace_allowed_ips=true",
    "allowed_ip=10.1.2.0/24",
    "allowed_ip=fd10::/64",
    "persistent_keepalive_interval=25",
    "",
    "",
  ]);
});

test("a device is read without its private key", () => {
  const secret = newPrivateKey();
  const answer = [
    `private_key=${Buffer.from(secret).toString("hex")}`,
    "listen_port=51820",
    `public_key=${hex}`,
    "preshared_key=".padEnd(78, "0"),
    "endpoint=172.30.0.2:51821",
    "persistent_keepalive_interval=25",
    "last_handshake_time_sec=1700000000",
    "last_handshake_time_nsec=5",
    "rx_bytes=92",
    "tx_bytes=148",
    "allowed_ip=10.10.1.0/24",
    "allowed_ip=fd10:0:0:1::/64",
    `public_key=${"03".repeat(32)}`,
    "protocol_version=1",
    "errno=0",
    "",
    "",
  ].join("\n");
  const { lines, errno } = readAnswer(answer);
  expect(errno).toBe(0);
  const device = readDevice(lines);
  expect(device.publicKey).toBe(publicKeyOf(secret));
  expect(JSON.stringify(device, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
    Buffer.from(secret).toString("base64"),
  );
  const [first, second] = device.peers;
  expect(first).toMatchObject({
    publicKey: key,
    keepaliveSeconds: 25,
    handshakeAt: 1_700_000_000,
    receivedBytes: 92,
    sentBytes: 148,
  });
  expect(first?.endpoint && `${formatIp(first.endpoint.ip)} ${first.endpoint.port}`).toBe("172.30.0.2 51821");
  expect(first?.allowed.map(formatCidr)).toEqual(["10.10.1.0/24", "fd10:0:0:1::/64"]);
  expect(second).toMatchObject({ allowed: [], keepaliveSeconds: 0, handshakeAt: 0 });
});

test("a device without a key has none", () => {
  expect(readDevice([["private_key", "0".repeat(64)]]).publicKey).toBeUndefined();
});

test.each([
  ["", /no "errno"/],
  ["errno=x\n\n", /no "errno"/],
  ["what\nerrno=0\n\n", /without "="/],
  ["listen_port=1\n\n", /no "errno"/],
])("an answer that is none is refused: %j", (text, wrong) => {
  expect(() => readAnswer(text)).toThrow(wrong);
});

test.each([[["public_key", "zz"]], [["private_key", "00"]], [["listen_port", "-1"]]] as const)(
  "a value that is none is refused: %j",
  (line) => {
    expect(() => readDevice([line])).toThrow(/wanted/);
  },
);

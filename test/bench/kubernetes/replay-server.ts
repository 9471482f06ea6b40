import { readFileSync } from "node:fs";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import type { AddressInfo } from "node:net";
import recorded from "./recorded.json" with { type: "json" };

/**
 * A program: an API server that answers lists and watches with copies of an object that a real one (1.35) has sent, in
 * either encoding, as fast as it can. What it costs is not the client's: it is a process of its own.
 *
 *     bun replay-server.ts CERTIFICATE KEY COUNTS EVENTS
 */
const [certificate = "", key = "", countsText = "{}", eventsText = "0"] = process.argv.slice(2);
const counts = JSON.parse(countsText) as Readonly<Record<string, number>>;
const events = Number(eventsText);

type Kind = keyof typeof recorded;
const fixed = {
  name: "object-000000",
  namespace: "ns-00000",
  uid: "00000000-0000-4000-8000-000000000000",
  ip: "10.100.100.100",
};

/** The recorded bytes, and where in them is what differs from object to object: always as long as it was. */
class Template {
  readonly #bytes: Buffer;
  readonly #places: readonly (readonly [at: number, what: keyof typeof fixed])[];

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#places = (Object.keys(fixed) as (keyof typeof fixed)[]).flatMap((what) => {
      const found: [number, typeof what][] = [];
      for (let at = bytes.indexOf(fixed[what]); at >= 0; at = bytes.indexOf(fixed[what], at + 1))
        found.push([at, what]);
      return found;
    });
  }

  numbered(i: number): Buffer {
    const three = (part: number): string => String(100 + (Math.floor(part) % 100));
    const texts = {
      name: `object-${String(i).padStart(6, "0")}`,
      namespace: `ns-${String(i % 25_000).padStart(5, "0")}`,
      uid: `00000000-0000-4000-8000-${i.toString(16).padStart(12, "0")}`,
      ip: `10.${three(i / 10_000)}.${three(i / 100)}.${three(i)}`,
    };
    const bytes = Buffer.from(this.#bytes);
    for (const [at, what] of this.#places) bytes.write(texts[what], at, "latin1");
    return bytes;
  }
}

const templates = Object.fromEntries(
  Object.entries(recorded).map(([kind, { json, protobuf }]) => [
    kind,
    { json: new Template(Buffer.from(JSON.stringify(json))), protobuf: new Template(Buffer.from(protobuf, "base64")) },
  ]),
) as Readonly<Record<Kind, { readonly json: Template; readonly protobuf: Template }>>;

const varint = (value: number): number[] =>
  value < 128 ? [value] : [(value % 128) + 128, ...varint(Math.floor(value / 128))];
const field = (number: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([Uint8Array.from([...varint(number * 8 + 2), ...varint(bytes.length)]), bytes]);
const text = (number: number, value: string): Buffer => field(number, Buffer.from(value));
const envelope = (kind: string, raw: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from("k8s\0"), field(1, text(2, kind)), field(2, raw)]);

function listed(kind: Kind, from: number, to: number, isProtobuf: boolean): Buffer {
  const { json, protobuf } = templates[kind];
  const next = to < (counts[kind] ?? 0) ? String(to) : "";
  const numbers = Array.from({ length: to - from }, (_, i) => from + i);
  if (!isProtobuf) {
    const head = `{"kind":"List","metadata":{"resourceVersion":"1000","continue":"${next}"},"items":[`;
    const items = numbers.flatMap((i) => [Buffer.from(i === from ? "" : ","), json.numbered(i)]);
    return Buffer.concat([Buffer.from(head), ...items, Buffer.from("]}")]);
  }
  const items = numbers.map((i) => field(2, protobuf.numbered(i)));
  const metadata = field(1, Buffer.concat([text(2, "1000"), text(3, next)]));
  return envelope("List", Buffer.concat([metadata, ...items]));
}

function event(kind: Kind, i: number, isProtobuf: boolean): Buffer {
  const { json, protobuf } = templates[kind];
  if (!isProtobuf)
    return Buffer.concat([Buffer.from('{"type":"MODIFIED","object":'), json.numbered(i), Buffer.from("}\n")]);
  const bytes = Buffer.concat([text(1, "MODIFIED"), field(2, field(1, envelope("Any", protobuf.numbered(i))))]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

const server = createSecureServer({ cert: readFileSync(certificate), key: readFileSync(key) });
server.on("stream", (stream: ServerHttp2Stream, headers: Readonly<Record<string, unknown>>) => {
  stream.on("error", () => undefined);
  const url = new URL(String(headers[":path"]), "https://any");
  const kind = (url.pathname.split("/").at(-1) ?? "") as Kind;
  const isProtobuf = String(headers["accept"]).startsWith("application/vnd.kubernetes.protobuf");
  stream.respond({
    ":status": 200,
    "content-type": isProtobuf ? "application/vnd.kubernetes.protobuf" : "application/json",
  });
  const count = counts[kind] ?? 0;
  if (url.searchParams.get("watch") === "true") {
    for (let i = 0; i < events; i++) stream.write(event(kind, i % count, isProtobuf));
    return;
  }
  const from = Number(url.searchParams.get("continue") ?? 0);
  const to = Math.min(count, from + Number(url.searchParams.get("limit") ?? count));
  stream.end(listed(kind, from, to, isProtobuf));
});
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));

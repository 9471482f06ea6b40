import { describe, expect, test } from "vitest";
import { hex, randomNumbers } from "../../test/fakes/http2/scripted-server.ts";
import { encodeHeaders, type Header, HpackDecoder, HpackError } from "./hpack.ts";
import { createHuffmanTables, huffmanDecode, huffmanEncode } from "./huffman.ts";

/** The examples of RFC 7541, appendix C: blocks that share a table, and what they say. */
const date1 = "Mon, 21 Oct 2013 20:13:21 GMT";
const date2 = "Mon, 21 Oct 2013 20:13:22 GMT";
const location: Header = ["location", "https://www.example.com"];
const requests: readonly (readonly Header[])[] = [
  [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "www.example.com"],
  ],
  [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "www.example.com"],
    ["cache-control", "no-cache"],
  ],
  [
    [":method", "GET"],
    [":scheme", "https"],
    [":path", "/index.html"],
    [":authority", "www.example.com"],
    ["custom-key", "custom-value"],
  ],
];
const responses: readonly (readonly Header[])[] = [
  [[":status", "302"], ["cache-control", "private"], ["date", date1], location],
  [[":status", "307"], ["cache-control", "private"], ["date", date1], location],
  [
    [":status", "200"],
    ["cache-control", "private"],
    ["date", date2],
    location,
    ["content-encoding", "gzip"],
    ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
  ],
];

describe("RFC 7541, appendix C", () => {
  test.each([
    [
      "C.2.1, literal with indexing",
      4096,
      ["400a637573746f6d2d6b65790d637573746f6d2d686561646572"],
      [[["custom-key", "custom-header"]]],
    ],
    ["C.2.2, literal without indexing", 4096, ["040c2f73616d706c652f70617468"], [[[":path", "/sample/path"]]]],
    ["C.2.3, literal never indexed", 4096, ["100870617373776f726406736563726574"], [[["password", "secret"]]]],
    ["C.2.4, indexed", 4096, ["82"], [[[":method", "GET"]]]],
    [
      "C.3, requests without Huffman code",
      4096,
      [
        "828684410f7777772e6578616d706c652e636f6d",
        "828684be58086e6f2d6361636865",
        "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
      ],
      requests,
    ],
    [
      "C.4, requests with Huffman code",
      4096,
      [
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
      ],
      requests,
    ],
    [
      "C.5, responses without Huffman code, evictions",
      256,
      [
        "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
        "4803333037c1c0bf",
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
      ],
      responses,
    ],
    [
      "C.6, responses with Huffman code, evictions",
      256,
      [
        "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
        "4883640effc1c0bf",
        "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
      ],
      responses,
    ],
  ] as [string, number, string[], (readonly Header[])[]][])("%s", (_, tableBytes, blocks, lists) => {
    const decoder = new HpackDecoder(tableBytes, 65_536);
    expect(blocks.map((block) => decoder.decode(hex(block)))).toEqual(lists);
  });
});

test.each([
  ["an index of 0", "80", "entry 0 is not in the tables"],
  ["an index beyond the tables", "be", "entry 62 is not in the tables"],
  ["a name beyond the tables", "7f0000", "entry 63 is not in the tables"],
  ["a literal without a value", "40016101", "a string has 1 bytes, wanted at most 0"],
  ["a literal that ends behind its name", "400161", "the header block ends inside a header"],
  ["an integer without an end", "ff80", "the header block ends inside a header"],
  ["an integer beyond 2^28", "ffffffffffff0f", "a number is beyond 2^28"],
  ["a string longer than the block", "000a61", "a string has 10 bytes, wanted at most 1"],
  ["a size update beyond the setting", "3fe21f", "the table's new size is 4097 bytes"],
  ["a size update behind a header", "8220", "follows a header"],
  ["the end symbol in a string", "000161" + "84ffffffff", "not in the Huffman code"],
  ["padding of zeros", "000161" + "8118", "not in the Huffman code"],
  ["padding of a whole byte", "000161" + "821fff", "not in the Huffman code"],
])("refuses %s", (_, block, reason) => {
  const decode = (): unknown => new HpackDecoder(4096, 65_536).decode(hex(block));
  expect(decode).toThrow(HpackError);
  expect(decode).toThrow(reason);
});

test("bounds what a short block can expand to", () => {
  const decoder = new HpackDecoder(4096, 65_536);
  const longEntry = encodeHeaders([["a", "x".repeat(3000)]]);
  longEntry[0] = 0x40;
  decoder.decode(longEntry);
  expect(() => decoder.decode(new Uint8Array(100).fill(0xbe))).toThrow("longer than 65536 bytes");
});

test("an entry larger than the table empties it", () => {
  const decoder = new HpackDecoder(64, 65_536);
  expect(decoder.decode(hex("40016101624001630164"))).toHaveLength(2);
  const large = encodeHeaders([["a", "x".repeat(64)]]);
  large[0] = 0x40;
  expect(decoder.decode(large)).toHaveLength(1);
  expect(() => decoder.decode(hex("be"))).toThrow("entry 62 is not in the tables");
});

test("the encoder's blocks read back", () => {
  const headers: Header[] = [
    [":method", "POST"],
    [":path", "/a.b/C"],
    ["te", "trailers"],
    ["x-empty", ""],
    ["x-long", "v".repeat(1000)],
  ];
  expect(new HpackDecoder(0, 65_536).decode(encodeHeaders(headers))).toEqual(headers);
});

/** Writes blocks as a server may: with a table, Huffman code, references and size updates by chance. */
class ChanceEncoder {
  readonly #huffman = createHuffmanTables();
  readonly #random: (below: number) => number;
  #table: Header[] = [];
  #most = 4096;

  constructor(random: (below: number) => number) {
    this.#random = random;
  }

  block(headers: readonly Header[]): Uint8Array {
    const out: number[] = [];
    if (this.#random(4) === 0) {
      this.#most = this.#random(4097);
      this.#trim();
      integer(out, this.#most, 5, 0x20);
    }
    for (const header of headers) this.#header(out, header);
    return new Uint8Array(out);
  }

  #header(out: number[], header: Header): void {
    const known = this.#table.findIndex(([name, value]) => name === header[0] && value === header[1]);
    if (known >= 0 && this.#random(4) > 0) {
      integer(out, 62 + known, 7, 0x80);
      return;
    }
    const named = this.#table.findIndex(([name]) => name === header[0]);
    const index = named >= 0 && this.#random(2) === 0 ? 62 + named : 0;
    const kind = this.#random(3);
    if (kind === 0) integer(out, index, 6, 0x40);
    else integer(out, index, 4, kind === 1 ? 0 : 0x10);
    if (index === 0) this.#string(out, header[0]);
    this.#string(out, header[1]);
    if (kind === 0) this.#table.unshift(header);
    this.#trim();
  }

  #trim(): void {
    const size = (): number => this.#table.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
    while (size() > this.#most) this.#table.pop();
  }

  #string(out: number[], value: string): void {
    if (this.#random(2) === 0) {
      integer(out, value.length, 7, 0);
      for (let i = 0; i < value.length; i++) out.push(value.charCodeAt(i));
      return;
    }
    const code = huffmanEncode(this.#huffman, value);
    integer(out, code.length, 7, 0x80);
    out.push(...code);
  }
}

function integer(out: number[], value: number, prefixBits: number, mark: number): void {
  const most = 2 ** prefixBits - 1;
  out.push(mark | Math.min(value, most));
  for (let rest = value - most; rest >= 0; rest = rest < 128 ? -1 : rest >> 7)
    out.push(rest < 128 ? rest : (rest & 127) | 128);
}

test("every byte has a code, alone and between others", () => {
  const tables = createHuffmanTables();
  for (let byte = 0; byte < 256; byte++) {
    const character = String.fromCharCode(byte);
    for (const text of [character, `a${character}`, `${character}${character}z`, `é€${character}`.replace("€", "\x00")])
      expect(huffmanDecode(tables, huffmanEncode(tables, text))).toBe(text);
  }
});

test("3000 random blocks of one connection read as they were written", () => {
  const random = randomNumbers(7541);
  const encoder = new ChanceEncoder(random);
  const decoder = new HpackDecoder(4096, 1_000_000);
  const anyText = (most: number): string =>
    Array.from({ length: random(most) }, () => String.fromCharCode(random(256))).join("");
  for (let i = 0; i < 3000; i++) {
    const headers = Array.from(
      { length: random(8) },
      (): Header => [`n${random(20)}`, random(3) > 0 ? `v${random(9)}` : anyText(600)],
    );
    expect(decoder.decode(encoder.block(headers))).toEqual(headers);
  }
});

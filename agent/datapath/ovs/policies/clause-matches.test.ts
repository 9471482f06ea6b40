import { expect, test } from "vitest";
import { contains, formatCidr, ipOf, overlap, parseCidr } from "../../../../shared/net/ip.ts";
import { random } from "../../../../test/support/random.ts";
import { cidrsOf, portMasks } from "./clause-matches.ts";

const cidr = (text: string) => parseCidr(text)!;
const left = (block: string, ...except: string[]) =>
  cidrsOf({ cidr: cidr(block), except: except.map(cidr) }).map(formatCidr);

test("exceptions are taken from a block in as few blocks as possible", () => {
  expect(left("10.0.0.0/8")).toEqual(["10.0.0.0/8"]);
  expect(left("10.0.0.0/8", "11.0.0.0/8", "fd00::/8")).toEqual(["10.0.0.0/8"]);
  expect(left("10.0.0.0/24", "10.0.0.0/24")).toEqual([]);
  expect(left("10.0.0.0/24", "10.0.0.0/8")).toEqual([]);
  expect(left("10.0.0.0/24", "10.0.0.128/25", "10.0.0.200/32")).toEqual(["10.0.0.0/25"]);
  expect(left("0.0.0.0/0", "255.255.255.255/32")).toHaveLength(32);
  expect(left("::/0", "fd00::1/128")).toHaveLength(128);
});

test("what is left is what is in the block and in no exception", () => {
  const next = random(1);
  for (let i = 0; i < 200; i++) {
    const except = Array.from({ length: next(6) }, () => cidr(`10.0.0.${next(256)}/${24 + next(9)}`));
    const blocks = cidrsOf({ cidr: cidr("10.0.0.0/24"), except });
    expect(blocks.filter((one) => blocks.some((other) => one !== other && overlap(one, other)))).toEqual([]);
    const wrong = Array.from({ length: 256 }, (_, host) => ipOf(4, 0x0a000000n + BigInt(host))).filter(
      (ip) => blocks.some((block) => contains(block, ip)) === except.some((block) => contains(block, ip)),
    );
    expect(wrong).toEqual([]);
  }
});

test.each([
  [80, 80, 1],
  [8080, 8090, 3],
  [30000, 32767, 5],
  [1024, 65535, 6],
  [32768, 60999, 7],
  [1, 65535, 16],
  [1, 65534, 30],
  [0, 65535, 1],
])("ports %i to %i are %i masked values", (first, last, count) => {
  const masks = portMasks(first, last);
  expect(masks).toHaveLength(count);
  const next = random(1);
  const asked = [first - 1, first, last, last + 1, ...Array.from({ length: 500 }, () => next(65_536))];
  for (const port of asked.filter((each) => each >= 0 && each <= 65_535)) {
    const found = masks.filter(({ value, mask }) => (port & mask) === value);
    expect(found.length, `${port}`).toBe(port >= first && port <= last ? 1 : 0);
  }
});

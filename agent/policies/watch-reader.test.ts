import { describe, expect, test } from "vitest";
import { staleAnnotation } from "../../shared/proto/control-plane-messages.ts";
import {
  addresses,
  bookmark,
  computed,
  frameOf,
  gone,
  patched,
  policy,
  targets,
} from "../../test/fakes/policy-events.ts";
import { WatchReader } from "./watch-reader.ts";

const initial = [
  addresses("clients", "y/c 10.0.0.1", "y/d 10.0.0.2 fd00::2 web:TCP/80"),
  targets("servers", "x/a"),
  policy("p1", "servers", [{ groups: ["clients"], blocks: ["10.0.0.0/8"], ports: ["TCP/80"] }]),
  computed("x/a", "uid"),
];
const later = [patched("AddressGroup", "clients", ["y/e 10.0.0.3"], ["y/c 10.0.0.1"]), gone(targets("servers"))];
const whole = (...frames: readonly Uint8Array[]): Uint8Array => new Uint8Array(Bun.concatArrayBuffers([...frames]));

/** What is heard of bytes that come in pieces of this size. */
function heard(bytes: Uint8Array, size = bytes.length): { said: unknown[]; error: string } {
  const said: unknown[] = [];
  const reader = new WatchReader("follow it", {
    event: ({ t }) => void said.push(t),
    complete: (isStale) => void said.push(isStale ? "complete, stale" : "complete"),
  });
  try {
    for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  } catch (caught) {
    return { said, error: (caught as Error).message };
  }
  return { said, error: "" };
}

describe("a watch of policies", () => {
  test.each([1, 2, 3, 7, 64, 100_000])("says the same in pieces of %i bytes", (size) => {
    const bytes = whole(...initial.map(frameOf), frameOf(bookmark()), ...later.map(frameOf));
    expect(heard(bytes, size)).toEqual({
      said: ["group", "group", "policy", "computed", "complete", "group changed", "group gone"],
      error: "",
    });
    const stale = frameOf(bookmark({ [staleAnnotation]: "true" }));
    expect(heard(stale, size).said).toEqual(["complete, stale"]);
  });

  const status = Uint8Array.fromHex("6b3873000a0c0a0276311206537461747573120f1a0d6e6f206c6f6e67657220697421");
  test.each<[string, Uint8Array]>([
    ["has more than", Uint8Array.of(0xff, 0, 0, 0)],
    ["does not begin as one of Kubernetes", whole(Uint8Array.of(0, 0, 0, 2, 0x12, 0))],
    ["ends twice", whole(frameOf(bookmark()), frameOf(bookmark()))],
    ['its initial set has "MODIFIED"', whole(...later.map(frameOf))],
    [
      'it is "DELETED" of a AddressGroupPatch',
      whole(frameOf(bookmark()), frameOf({ ...gone(later[0] ?? bookmark()) })),
    ],
    ['wanted "controlplane.pipette.io/v1"', wronglyVersioned()],
    ["the controller ends it: no longer it!", whole(errorFrame(status))],
  ])("%s: ends it", (is, bytes) => {
    expect(heard(bytes).error).toContain(is);
    expect(heard(bytes, 1).error).toContain(is);
  });

  test("nothing of what is cut off is taken for whole", () => {
    const frame = frameOf(initial[2] ?? bookmark());
    for (let length = 0; length < frame.length; length++) expect(heard(frame.subarray(0, length)).said).toEqual([]);
  });
});

/** A computed pod of Antrea's API, which has none. */
function wronglyVersioned(): Uint8Array {
  const told = computed("x/a");
  const text = new TextDecoder("latin1").decode(frameOf(told)).replace("pipette.io/v1", "antreaX.io/v1");
  return Uint8Array.from(text, (char) => char.charCodeAt(0));
}

function errorFrame(object: Uint8Array): Uint8Array {
  const raw = Uint8Array.of(0x0a, object.length, ...object);
  const event = Uint8Array.of(0x0a, 5, ...new TextEncoder().encode("ERROR"), 0x12, raw.length, ...raw);
  return Uint8Array.of(0, 0, 0, event.length, ...event);
}

import { describe, expect, test } from "vitest";
import { random } from "../../../test/support/random.ts";
import { ip, recorded, recordedPorts, recordings } from "./recorded-trace.ts";
import { stepsOf } from "./report.ts";
import { parseTrace } from "./trace-text.ts";
import { verdictOf } from "./verdict.ts";

describe("what ofproto/trace prints", () => {
  test("tables in their order, over the looks at connection tracking", () => {
    const passes = parseTrace(recorded("same-node"));
    expect(passes.map(({ hops }) => hops.map(({ table }) => table))).toEqual([
      [0, 30, 40, 70],
      [80, 110, 140, 180, 220],
      [240],
    ]);
    expect(passes.map(({ datapathActions }) => datapathActions)).toEqual([
      expect.stringMatching(/^ct\(zone=65520,nat\),recirc\(/),
      expect.stringMatching(/^ct\(commit,zone=65520,mark=0x3\/0xf\),recirc\(/),
      "p2",
    ]);
    expect(passes[2]?.finalFlow).toBe("unchanged");
    expect(passes[0]?.flow).toMatch(/^dp_hash=0x1,icmp,in_port=p1,/);
  });

  test("a flow with its match, priority and cookie, and what it did", () => {
    const [first, second] = parseTrace(recorded("same-node"));
    expect(first?.hops[2]).toEqual({
      table: 40,
      match: "ip,in_port=p1,dl_src=0a:00:00:00:00:02,nw_src=10.10.1.2",
      priority: 200,
      cookie: 0x1010000000007n,
      lines: [{ t: "action", text: "resubmit(,70)" }],
    });
    expect(second?.hops[0]).toMatchObject({ match: "", priority: 0 });
  });

  test("no flow that matches", () => {
    const [pass] = parseTrace(recorded("spoofed"));
    expect(pass?.hops.at(-1)).toEqual({
      table: 40,
      match: "",
      priority: undefined,
      cookie: 0n,
      lines: [{ t: "action", text: "drop" }],
    });
    expect(pass?.datapathActions).toBe("drop");
  });

  test("remarks and warnings", () => {
    const lines = parseTrace(recorded("other-node")).at(-1)?.hops.at(-1)?.lines;
    expect(lines).toEqual([
      { t: "action", text: "output:NXM_NX_REG1[]" },
      { t: "note", text: "output port is 1" },
      { t: "warning", text: "Not tunneling to our own address" },
    ]);
  });

  test("a bucket's tables are on the way too", () => {
    const [, second] = parseTrace(recorded("service"));
    expect(second?.hops.map(({ table }) => table)).toEqual([80, 110, 120]);
  });

  test.each(["", "\n\n", "no such thing", "Final flow: unchanged\nDatapath actions: p2\n"])("nothing in %j", (text) => {
    expect(parseTrace(text)).toEqual([]);
  });
});

test("any damage to the text is read to its end, and told of in the words of a verdict", () => {
  const next = random(7);
  const packet = {
    inPort: 11,
    protocol: { t: "icmp" },
    source: { ip: ip("10.10.1.2"), mac: "0a:00:00:00:00:02" },
    destination: { ip: ip("10.10.1.3"), mac: "0a:00:00:00:00:03" },
  } as const;
  const scraps = [
    "0x",
    "reg0=0x/",
    ">>>> ",
    " -> ",
    "999. priority 1",
    "\0",
    "\u001b[2J",
    "set_field:0x->reg0",
    ",",
    "tun_dst=",
  ];
  for (let round = 0; round < 300; round++) {
    let text = recorded(recordings[next(recordings.length)] ?? "spoofed");
    for (let change = next(6); change >= 0; change--) {
      const [at, length] = [next(text.length + 1), next(60)];
      text = text.slice(0, at) + (scraps[next(scraps.length)] ?? "") + text.slice(at + length);
    }
    const passes = parseTrace(text);
    const verdict = verdictOf(passes, packet, recordedPorts);
    expect(["delivered", "tunnel", "out", "dropped"]).toContain(verdict.t);
    for (const step of stepsOf(passes, String)) expect(step.table).toBeLessThan(1000);
  }
});

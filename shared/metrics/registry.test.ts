import { describe, expect, test } from "vitest";
import type { Definitions } from "./definitions.ts";
import { processMetrics, readProcess } from "./process-metrics.ts";
import { Registry } from "./registry.ts";

const definitions = {
  a_total: { kind: "counter", help: 'What \\ is\n"said".', labels: ["verb", "code"] },
  g: { kind: "gauge", help: "Now.", labels: ["state"] },
  h_seconds: { kind: "histogram", help: "How long.", labels: ["verb"], buckets: [0.1, 1] },
} as const satisfies Definitions;

const fresh = { freshMs: 0 };

describe("the registry", () => {
  test("writes what was counted, in the text format, and nothing of what was not", async () => {
    const registry = new Registry(definitions, fresh);
    expect(await registry.text()).toBe("");
    registry.add("a_total", { verb: "ADD", code: 0 });
    registry.add("a_total", { code: 0, verb: "ADD" }, 2);
    registry.add("a_total", { verb: 'a"\\\n', code: 101 });
    registry.add("a_total", { verb: "ADD", code: 0 }, -5);
    expect(await registry.text()).toBe(
      [
        '# HELP a_total What \\\\ is\\n"said".',
        "# TYPE a_total counter",
        'a_total{verb="ADD",code="0"} 3',
        'a_total{verb="a\\"\\\\\\n",code="101"} 1',
        "",
      ].join("\n"),
    );
  });

  test("counts in each bucket what is in those below it, a bound included", async () => {
    const registry = new Registry(definitions, fresh);
    for (const seconds of [0.1, 0.05, 0.5, 7, Number.NaN]) registry.observe("h_seconds", { verb: "DEL" }, seconds);
    expect((await registry.text()).split("\n").slice(2)).toEqual([
      'h_seconds_bucket{verb="DEL",le="0.1"} 2',
      'h_seconds_bucket{verb="DEL",le="1"} 3',
      'h_seconds_bucket{verb="DEL",le="+Inf"} 4',
      'h_seconds_sum{verb="DEL"} 7.65',
      'h_seconds_count{verb="DEL"} 4',
      "",
    ]);
  });

  test("asks at each scrape what is there: what is not told again is gone", async () => {
    const registry = new Registry(definitions, fresh);
    let states = ["free", "cooling"];
    const reading = registry.read((samples) => {
      for (const state of states) samples.set("g", { state }, Number.POSITIVE_INFINITY);
    });
    expect(await registry.text()).toContain('g{state="free"} +Inf\ng{state="cooling"} +Inf\n');
    states = ["cooling"];
    expect(await registry.text()).not.toContain("free");
    reading[Symbol.dispose]();
    expect(await registry.text()).toBe("");
  });

  test("waits for no reader that does not answer, and loses nothing by one that fails", async () => {
    const registry = new Registry(definitions, { ...fresh, readMs: 20 });
    registry.read(async (samples) => {
      samples.set("g", { state: "early" }, 1);
      await new Promise(() => undefined);
    });
    registry.read(() => {
      throw new Error("away");
    });
    registry.read((samples) => samples.set("g", { state: "there" }, 2));
    expect(await registry.text()).toContain('g{state="early"} 1\ng{state="there"} 2\n');
  });

  test("asks once for all who ask at about the same time", async () => {
    const registry = new Registry(definitions, { freshMs: 60_000 });
    let asked = 0;
    registry.read((samples) => samples.set("g", { state: "x" }, ++asked));
    const [first, second] = await Promise.all([registry.text(), registry.text()]);
    expect([first === second, await registry.text(), asked]).toEqual([true, first, 1]);
  });

  test("keeps a bounded number of series, whatever labels come", async () => {
    const registry = new Registry(definitions, fresh);
    for (let i = 0; i < 5_000; i++) {
      registry.add("a_total", { verb: "ADD", code: i });
      registry.observe("h_seconds", { verb: String(i) }, 1);
    }
    registry.add("a_total", { verb: "ADD", code: 0 });
    const text = await registry.text();
    expect(text.match(/^a_total\{/gm)).toHaveLength(1_000);
    expect(text.match(/^h_seconds_count\{/gm)).toHaveLength(1_000);
    expect(text).toContain('a_total{verb="ADD",code="0"} 2\n');
  });
});

test("a process tells what the system knows of it", async () => {
  const registry = new Registry(processMetrics, fresh);
  registry.read(readProcess);
  const text = await registry.text();
  const told = (name: string): number => Number(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, "m").exec(text)?.[1]);
  const { user, system } = process.cpuUsage();
  expect(told("process_cpu_seconds_total")).toBeGreaterThan(0);
  expect(told("process_cpu_seconds_total")).toBeLessThanOrEqual((user + system) / 1e6);
  expect(told("process_resident_memory_bytes")).toBeGreaterThan(10 * 1024 * 1024);
  const nowS = Date.now() / 1000;
  expect(told("process_start_time_seconds")).toBeGreaterThan(nowS - 3_600);
  expect(told("process_start_time_seconds")).toBeLessThan(nowS);
  expect(told("process_open_fds")).toBeGreaterThan(3);
  expect(text).toMatch(/^pipette_build_info\{version="[^"]+",runtime="bun [^"]+",os="linux"\} 1$/m);
});

import { describe, expect, test } from "vitest";
import { RecordedMeter } from "../../test/fakes/recorded-meter.ts";
import { timed } from "./meter.ts";

class Path {
  #calls = 0;
  readonly name = "path";

  get calls(): number {
    return this.#calls;
  }
  async attach(fails: boolean): Promise<number> {
    this.#calls++;
    if (fails) throw new Error("no");
    return this.#calls;
  }
  known(): number {
    return this.#calls;
  }
}

describe("an object whose operations are timed", () => {
  test("tells of each how it ended, and answers as before", async () => {
    const meter = new RecordedMeter();
    const path = timed(new Path(), { attach: "attach" }, meter);
    expect(await path.attach(false)).toBe(1);
    await expect(path.attach(true)).rejects.toThrow("no");
    // Fields and other methods are the object's own, and what is not named stays synchronous.
    expect([path.calls, path.known(), path.name]).toEqual([2, 2, "path"]);
    const each = (result: string): string[] => [
      `pipette_datapath_operations_total{op=attach,result=${result}}`,
      "pipette_datapath_operation_duration_seconds{op=attach}",
    ];
    expect(meter.told).toEqual([...each("ok"), ...each("failed")]);
  });

  test("is the object itself where nobody asks for numbers", () => {
    const path = new Path();
    expect(timed(path, { attach: "attach" }, undefined)).toBe(path);
  });
});

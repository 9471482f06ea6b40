import { expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { clientTable, measureClient } from "./kubernetes/measure-client.ts";

describeWith("the benchmark of the API server's client in miniature", ["linux", "openssl"], () => {
  test("every kind is followed in both encodings, to the last object and the last event", async () => {
    using scratch = scratchDir();
    const counts = { nodes: 30, pods: 700, networkpolicies: 700 };
    const figures = await measureClient({ counts, events: 200, scratch: scratch.path });
    const seen = figures.map(({ kind, encoding, objects, events }) => `${kind} ${encoding} ${objects} ${events}`);
    expect(seen).toEqual(
      Object.entries(counts).flatMap(([kind, count]) =>
        ["json", "protobuf"].map((each) => `${kind} ${each} ${count} 200`),
      ),
    );
    for (const { listMs, listCpuMs, keptBytes } of figures)
      expect(Math.min(listMs, listCpuMs, keptBytes)).toBeGreaterThan(0);
    expect(clientTable(figures).split("\n")).toHaveLength(8);
  });
});

import { expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { measureBridgeServices } from "./measures/bridge-services.ts";

describeWith("the benchmark of services on a kernel bridge in miniature", ["linux", "root", "nft"], () => {
  test("each measure gets a figure", async () => {
    const rows = await measureBridgeServices({
      services: { count: 4, endpoints: 2 },
      rounds: 1,
      progress: () => undefined,
    });
    const services = "4 services with 2 endpoints each on a kernel bridge";
    expect(rows.map(({ measure }) => measure)).toEqual([
      `${services}, into an empty table`,
      `${services}, by an agent that finds them`,
      `${services}, longest turn of the event loop`,
      `${services}, one endpoint changes`,
      `50 new connections, by one of ${services}`,
    ]);
    for (const { measure, value } of rows)
      expect(value, measure).toSatisfy((is: number) => Number.isFinite(is) && is > 0);
  });
});

import { expect, test } from "vitest";
import { createLogger, redactArgs, redactConf } from "./log.ts";

test("writes one JSON line per message at or above the level, with the fields of every ancestor", () => {
  const lines: string[] = [];
  const log = createLogger("info", (line) => lines.push(line)).with({ request: "r1" });
  log.debug("unseen");
  log.warn("seen", { verb: "ADD" });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0]!)).toMatchObject({ level: "warn", message: "seen", request: "r1", verb: "ADD" });
});

test("redacts what is not known to be harmless", () => {
  expect(redactConf({ name: "n", ipam: { subnet: "10.0.0.0/8", token: "s3cret" }, auth: { user: "u" } })).toEqual({
    name: "n",
    ipam: { subnet: "10.0.0.0/8", token: "…" },
    auth: "…",
  });
  expect(redactArgs("IgnoreUnknown=1;K8S_POD_NAME=web;PASSWORD=s3cret")).toBe(
    "IgnoreUnknown=1;K8S_POD_NAME=web;PASSWORD=…",
  );
});

import { expect, test } from "vitest";
import { parseAgentConfig } from "./parse-agent-config.ts";

const parse = (metrics: object) =>
  parseAgentConfig(
    JSON.stringify({ networks: [{ name: "pods", subnets: ["10.1.0.0/24"], bridge: "b0" }], metrics }),
    "agent.yaml",
  );

test.each([
  ["[::]:10352", "::"],
  ["0.0.0.0:1", "0.0.0.0"],
])("%s is where it listens", (listen, host) => {
  expect(parse({ listen })).toMatchObject({ t: "ok", config: { metrics: { listen: { host }, plain: false } } });
});

test.each(["127.0.0.1:10352", "127.9.9.9:10352", "[::1]:10352", "[::ffff:127.0.0.1]:10352"])(
  "%s may be plain",
  (listen) => {
    expect(parse({ listen, plain: true })).toMatchObject({ t: "ok" });
  },
);

test.each<[object, RegExp]>([
  [{ listen: "10.0.0.1:10352", plain: true }, /"metrics\.plain" is true at "10\.0\.0\.1"/],
  [{ listen: "[::]:10352", plain: true }, /"metrics\.plain" is true at "::"/],
  [{ listen: "[::ffff:10.0.0.1]:10352", plain: true }, /"metrics\.plain"/],
  [{ listen: "127.0.0.1:1", plain: true, certificates: "/x" }, /"metrics\.certificates" is there beside "plain"/],
  [{ listen: "localhost:10352" }, /"metrics\.listen"/],
  [{ listen: "127.0.0.1:0" }, /"metrics\.listen"/],
  [{ listen: "::1:10352" }, /"metrics\.listen"/],
  [{ listen: "127.0.0.1:70000" }, /"metrics\.listen"/],
  [{}, /listen/],
])("%j is refused", (metrics, is) => {
  const parsed = parse(metrics);
  expect(parsed.t === "wrong" ? parsed.problems.join() : "").toMatch(is);
});

import { expect, test } from "vitest";
import { createLogger } from "../shared/log.ts";
import { parseAgentConfig } from "./config/parse-agent-config.ts";
import { chooseDataPath } from "./data-path-choice.ts";

const choose = async (dataPath: string) => {
  const network = "{ name: pods, subnets: [10.1.0.0/24], bridge: br0, hns: { nodeAddress: 192.168.1.5 } }";
  const parsed = parseAgentConfig(`dataPath: ${dataPath}\nnetworks: [${network}]\n`, "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  return chooseDataPath(
    parsed.config,
    createLogger("error", () => undefined),
  );
};

test("Linux has bridges and no HNS", async () => {
  expect(await choose("bridge")).toMatchObject({
    dataPathName: "bridge",
    livenessProbes: [{ name: "network namespaces" }],
  });
  await expect(choose("hns")).rejects.toMatchObject({
    code: 7,
    message: 'Cannot run the agent: "dataPath" is "hns", which Windows has, wanted "bridge"',
  });
});

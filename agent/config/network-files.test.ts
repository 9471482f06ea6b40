import { writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runAt } from "../../test/fakes/terminal-run.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { agentCommand } from "../commands/agent/agent-command.ts";

test("the check of the configuration names keys that nobody reads in the files beside it", async () => {
  using scratch = scratchDir();
  const at = (file: string, content: unknown): string => {
    const path = `${scratch.path}/${file}`;
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    return path;
  };
  const ipam = { type: "pipette-ipam", subnet: "10.9.0.0/24", exlude: ["10.9.0.7"], remark: "ours" };
  at("10-blue.conflist", { name: "blue", plugins: [{ type: "portmap" }, { type: "bridge", ipam }] });
  at("20-one.conf", { name: "one", type: "ptp", ipam: { ...ipam, remark: undefined } });
  at("30-theirs.conf", { name: "theirs", type: "bridge", ipam: { ...ipam, type: "host-local" } });
  at("40-garbage.conflist", "{");
  at("50-strange.conflist", { plugins: [7] });
  at("pods.json", { exlude: [] });
  const config = at(
    "agent.yaml",
    `networks: [{ name: pods, subnets: [10.9.0.0/24], bridge: pt0 }]\ndataDir: ${scratch.path}\ncni: { confDir: ${scratch.path} }\n`,
  );
  const { status, stdout, stderr } = await runAt("pipette agent", agentCommand, ["--check", "--config", config]);
  expect([status, stdout]).toEqual([0, `${config} is in order\n`]);
  expect(stderr.replaceAll(`${scratch.path}/`, "").trimEnd().split("\n")).toEqual([
    '10-blue.conflist: "plugins[1].ipam.exlude" is an unknown key (did you mean "exclude"?) and passed over',
    '10-blue.conflist: "plugins[1].ipam.remark" is an unknown key and passed over',
    '20-one.conf: "ipam.exlude" is an unknown key (did you mean "exclude"?) and passed over',
    'pods.json: "exlude" is an unknown key (did you mean "exclude"?) and passed over',
  ]);
});

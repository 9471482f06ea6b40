import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { type IpamTerminal, ipamTerminal } from "../../test/fakes/ipam-terminal.ts";
import { findingCodes } from "../check/finding.ts";
import { ipamCommands } from "./commands.ts";

const schema = JSON.parse(readFileSync(new URL("../../conf/ipam-output.schema.json", import.meta.url), "utf8"));
const ajv = new Ajv2020({ strict: true, allErrors: true });
ajv.addSchema(schema, "output");

function problems(command: string, output: unknown): unknown {
  const validate = ajv.getSchema(`output#/$defs/${command}`);
  if (validate === undefined) throw new Error(`The schema has no definition "${command}"`);
  return validate(output) ? [] : validate.errors;
}

/** host-local's directory of the network, with a lease of another holder and a file that is none. */
function hostLocal(node: IpamTerminal): string {
  const directory = `${node.path}/host-local`;
  mkdirSync(directory);
  writeFileSync(`${directory}/10.1.0.2`, "theirs\r\neth0");
  writeFileSync(`${directory}/10.1.0.20`, "new\r\neth0");
  writeFileSync(`${directory}/10.1.0.21`, "");
  return directory;
}

/** Everything that can be in an output should be in one of these. */
const outputs: readonly (readonly [command: string, args: (node: IpamTerminal) => readonly string[]])[] = [
  ["list", () => ["list"]],
  ["show", () => ["show", "s2"]],
  ["show", () => ["show", "nobody"]],
  ["history", () => ["history"]],
  ["history", () => ["history", "10.1.0.3"]],
  ["map", () => ["map"]],
  ["map", ({ conf }) => ["map", "--conf", conf]],
  ["stats", () => ["stats"]],
  ["stats", ({ conf }) => ["stats", "--conf", conf]],
  ["allocate", ({ conf }) => ["allocate", "--conf", conf, "--container", "s9"]],
  ["release", () => ["release", "--container", "s1"]],
  ["gc", ({ path }) => ["gc", "--network", "blue", "--keep", `${path}/keep.json`, "--dry-run"]],
  ["check", () => ["check"]],
  ["check", () => ["check", "--repair"]],
  ["import", (node) => ["import", "--network", "blue", "--from", hostLocal(node)]],
  ["export", ({ path }) => ["export", "--network", "blue", "--to", `${path}/given-back`]],
];

test.each(outputs)("%s --json fits the schema", async (command, args) => {
  using node = ipamTerminal();
  for (const id of ["s1", "s2", "s3"]) await node.allocate(id);
  await node.run("release", "--container", "s2");
  writeFileSync(`${node.path}/keep.json`, '[{"containerID": "s1", "ifname": "eth0"}]');
  // For a finding, a churn by the hour, and leases of an earlier boot.
  await node.change((store) => {
    store.setMark("generation", "1");
    for (const lease of store.select({ by: "network" }))
      store.put({ ...lease, bootId: "another", allocatedAtMs: Date.now() - 36_000_000 });
  });
  const { stdout, stderr } = await node.run(...args(node), "--json");
  expect(stdout, stderr).not.toBe("");
  const output: unknown = JSON.parse(stdout);
  expect(problems(command, output)).toEqual([]);
  expect(ajv.validate("output", output)).toBe(true);
});

test("the schema would refuse what does not fit", () => {
  expect(problems("list", [{ network: "blue" }])).not.toEqual([]);
  expect(problems("release", { released: [], more: 1 })).not.toEqual([]);
});

test("every command with --json has a definition, and every finding its code", async () => {
  for (const { name, load } of ipamCommands.entries) {
    const command = await load();
    if (command.kind === "command" && command.options["json"] !== undefined) expect(schema.$defs).toHaveProperty(name);
  }
  expect(schema.$defs.check.properties.findings.items.properties.code.enum).toEqual(findingCodes);
});

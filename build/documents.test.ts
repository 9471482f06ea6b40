import { readdirSync, readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { parseAgentConfig } from "../agent/config/parse-agent-config.ts";
import { generated } from "./documents.ts";

const conf = new URL("../conf/", import.meta.url);
const textOf = (name: string): string => readFileSync(new URL(name, conf), "utf8");
const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true });
const validatorOf = (name: string) => ajv.compile(JSON.parse(textOf(`${name}.schema.json`)));

test.each(generated())('$path is as "npm run documents" makes it', ({ path, text }) => {
  // How JSON is laid out is biome's to say.
  const content = (of: string): unknown => (path.endsWith(".json") ? JSON.parse(of) : of);
  expect(content(readFileSync(path, "utf8"))).toEqual(content(text));
});

describe("JSON Schemas", () => {
  const [agent, nodes, services] = [validatorOf("agent"), validatorOf("nodes"), validatorOf("services")];

  test.each([
    ["agent.yaml", agent],
    ["services.yaml", services],
    ...readdirSync(new URL("samples/", conf)).flatMap((folder) =>
      readdirSync(new URL(`samples/${folder}/`, conf)).map(
        (name) => [`samples/${folder}/${name}`, name === "nodes.yaml" ? nodes : agent] as const,
      ),
    ),
  ] as const)("take %s", (name, validate) => {
    expect(validate(Bun.YAML.parse(textOf(name))) || validate.errors).toBe(true);
  });

  const network = { name: "pods", subnets: ["10.1.0.0/24"], bridge: "br0" };
  const registry = { type: "etcd", endpoints: ["https://h:1"] };
  test.each([
    {},
    { networks: [] },
    { networks: [{ ...network, mtu: 1 }] },
    { networks: [{ ...network, colour: "red" }] },
    { networks: [{ name: "pods" }] },
    { networks: [network], dataPath: "vlan" },
    { networks: [network], socket: 7 },
    { networks: [network], cni: { disableGC: "no" } },
    { networks: [network], nodes: {} },
    { networks: [network], nodes: { registry: { ...registry, file: "/n.yaml" } } },
    { networks: [network], nodes: { registry: { type: "static" } } },
    { networks: [network], ovs: { tunnelPort: 0 } },
  ])("refuse what the parser refuses: %j", (document) => {
    expect(agent(document)).toBe(false);
    expect(parseAgentConfig(JSON.stringify(document), "f").t).toBe("wrong");
  });

  test("take what the parser takes", () => {
    const document = { networks: [network], nodes: { registry } };
    expect(agent(document) || agent.errors).toBe(true);
    expect(parseAgentConfig(JSON.stringify(document), "f").t).toBe("ok");
  });
});

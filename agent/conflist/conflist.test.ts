import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parseIpamConfig } from "../../ipam/mod.ts";
import { wrongNetworkName } from "../../shared/cni/names.ts";
import { supportedVersions } from "../../shared/cni/versions.ts";
import { writeAtomically } from "../../shared/os/atomic-file.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { AgentConfig } from "../config/agent-config.ts";
import { parseAgentConfig } from "../config/parse-agent-config.ts";
import { chainOf, usualOf } from "./chained-plugins.ts";
import { conflistPath, conflistText } from "./conflist.ts";

const samples = new URL("../../conf/", import.meta.url).pathname;

function configOf(text: string): AgentConfig {
  const parsed = parseAgentConfig(text, "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  return parsed.config;
}

const yaml = "networks: [{ name: pods, subnets: [10.244.1.0/24], bridge: br0 }]\n";

describe("conflistText", () => {
  test("of the least configuration is the sample beside agent.yaml", () => {
    const config = configOf(yaml);
    // With the usual plugins beside ours.
    const text = conflistText(config, config.networks[0]!, {
      plugins: usualOf(["portmap", "bandwidth"]),
      versions: ["1.0.0", "1.1.0"],
    });
    expect(JSON.parse(text)).toEqual(JSON.parse(readFileSync(join(samples, "10-pipette.conflist"), "utf8")));
  });

  test("has what the configuration says: both families, other plugins after ours, other places", async () => {
    const config = configOf(readFileSync(join(samples, "agent.yaml"), "utf8"));
    const list = JSON.parse(conflistText(config, config.networks[0]!, await chainOf(config)));
    expect(list.plugins.map((plugin: { type: string }) => plugin.type)).toEqual(["pipette", "portmap", "bandwidth"]);
    expect(list.plugins[0].ipam.routes).toEqual([{ dst: "0.0.0.0/0" }, { dst: "::/0" }]);
    expect(list.plugins[0].ipam.exclude).toEqual(["10.244.1.5", "10.244.1.16/28"]);
    expect(conflistPath(config)).toBe("/etc/cni/net.d/10-pipette.conflist");
  });

  test("leaves cniVersions out where the configuration has none, and has no path where it has no name", async () => {
    const config = configOf(`${yaml}cni: { cniVersions: [], fileName: "" }\n`);
    expect(Object.keys(JSON.parse(conflistText(config, config.networks[0]!, await chainOf(config))))).toEqual([
      "cniVersion",
      "name",
      "plugins",
    ]);
    expect(conflistPath(config)).toBeUndefined();
  });
});

test("only where HNS maps a pod's ports are they asked of us", async () => {
  const capabilities = async (text: string): Promise<unknown> => {
    const config = configOf(text);
    return JSON.parse(conflistText(config, config.networks[0]!, await chainOf(config))).plugins[0].capabilities;
  };
  const hns = yaml.replace("bridge: br0", "bridge: br0, hns: { nodeAddress: 192.168.1.5 }");
  const common = { dns: true, ips: true, ipRanges: true, mac: true };
  expect(await capabilities(yaml)).toEqual(common);
  expect(await capabilities(`dataPath: hns\n${hns}`)).toEqual({ ...common, portMappings: true });
});

describe("the samples in conf", () => {
  const files = readdirSync(samples).filter((file) => file.endsWith(".conflist"));

  test("are there", () => expect(files).toHaveLength(3));

  test.each(files)("%s has a network that our plugins take", (file) => {
    const list = JSON.parse(readFileSync(join(samples, file), "utf8"));
    expect(supportedVersions).toContain(list.cniVersion);
    expect(wrongNetworkName(list.name)).toBeUndefined();
    const conf = new Fields({ ...list.plugins[0], name: list.name });
    const ipam = parseIpamConfig({ conf, network: list.name, version: list.cniVersion, args: "" });
    expect(ipam.type).toBe("pipette-ipam");
    expect(ipam.routes).toHaveLength(ipam.rangeSets.length);
  });
});

describe("writeAtomically", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "pipette-conflist-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test("makes the directory, replaces what is another, and leaves the same alone", () => {
    const path = join(directory, "net.d", "10.conflist");
    expect(writeAtomically(path, "one")).toBe(true);
    const first = statSync(path);
    expect(first.mode & 0o777).toBe(0o600);
    expect(writeAtomically(path, "one")).toBe(false);
    expect(statSync(path).ino).toBe(first.ino);
    // Another file under the name, not other bytes in the file: whoever reads the old one reads all of it.
    expect(writeAtomically(path, "two")).toBe(true);
    expect(statSync(path).ino).not.toBe(first.ino);
    expect(readdirSync(join(directory, "net.d"))).toEqual(["10.conflist"]);
  });

  test("that fails says where and leaves nothing behind", () => {
    writeFileSync(join(directory, "file"), "");
    expect(() => writeAtomically(join(directory, "file", "10.conflist"), "x")).toThrow(/Cannot write ".*10\.conflist"/);
    expect(readdirSync(directory)).toEqual(["file"]);
  });
});

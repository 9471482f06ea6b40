import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { parseAgentConfig } from "../config/parse-agent-config.ts";
import { type Chain, chainOf, isBesideOurs, lackOf, whereIs } from "./chained-plugins.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "pipette-chain-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

function put(...names: readonly string[]): void {
  for (const name of names) writeFileSync(join(directory, name), "", { mode: 0o755 });
}

function chained(more = ""): Promise<Chain> {
  const parsed = parseAgentConfig(`networks: [{ name: pods, subnets: [10.1.0.0/24], bridge: br0 }]\n${more}`, "");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  return chainOf(parsed.config, directory);
}

test("where nobody says otherwise, those that are there are chained, portmap first", async () => {
  put("bandwidth", "portmap");
  expect((await chained()).plugins).toEqual([
    { type: "portmap", capabilities: { portMappings: true }, snat: true },
    { type: "bandwidth", capabilities: { bandwidth: true } },
  ]);
  expect(lackOf(await chained())).toBeUndefined();
});

test("of what is not there, or cannot be run, it says what pods go without", async () => {
  put("portmap", "bandwidth");
  chmodSync(join(directory, "bandwidth"), 0o644);
  expect((await chained()).plugins.map(({ type }) => type)).toEqual(["portmap"]);
  expect(lackOf(await chained())).toBe(`pods' bandwidth limits, as "${directory}" has no "bandwidth"`);
  rmSync(join(directory, "portmap"));
  expect(lackOf(await chained())).toBe(
    `pods' host ports and bandwidth limits, as "${directory}" has no "portmap" and "bandwidth"`,
  );
});

test("newer versions are offered where every plugin of the list knows them, or somebody says so", async () => {
  const knowing = (name: string, ...supportedVersions: readonly string[]): void =>
    writeFileSync(join(directory, name), `#!/bin/sh\necho '${JSON.stringify({ supportedVersions })}'\n`, {
      mode: 0o755,
    });
  expect((await chained()).versions).toEqual(["1.0.0", "1.1.0"]);
  knowing("portmap", "0.4.0", "1.0.0", "1.1.0");
  expect((await chained()).versions).toEqual(["1.0.0", "1.1.0"]);
  knowing("bandwidth", "0.4.0", "1.0.0");
  expect((await chained()).versions).toEqual(["1.0.0"]);
  put("bandwidth");
  expect((await chained()).versions).toEqual(["1.0.0"]);
  expect((await chained('cni: { cniVersion: "0.4.0", plugins: [{ type: nowhere }] }\n')).versions).toEqual(["0.4.0"]);
  expect((await chained('cni: { cniVersions: ["1.0.0", "1.1.0"] }\n')).versions).toEqual(["1.0.0", "1.1.0"]);
});

test("one that hangs when it is asked for its versions holds up nobody else", async () => {
  writeFileSync(join(directory, "portmap"), "#!/bin/sh\nexec sleep 60\n", { mode: 0o755 });
  let turns = 0;
  const timer = setInterval(() => turns++, 20);
  expect((await chained()).versions).toEqual(["1.0.0"]);
  clearInterval(timer);
  expect(turns).toBeGreaterThan(5);
});

test("what the configuration says holds, there or not", async () => {
  put("portmap", "bandwidth");
  expect((await chained("cni: { plugins: [] }\n")).plugins).toEqual([]);
  expect((await chained("cni: { plugins: [{ type: tuning }] }\n")).plugins).toEqual([{ type: "tuning" }]);
  expect(lackOf(await chained("cni: { plugins: [{ type: tuning }] }\n"))).toBeUndefined();
});

test("a plugin is beside ours only where ours is", async () => {
  put("tuning-of-nobody");
  const at = whereIs("tuning-of-nobody", [directory]);
  expect(at).toBe(join(directory, "tuning-of-nobody"));
  expect(isBesideOurs(at ?? "")).toBe(false);
  put("pipette", "pipette-ipam");
  expect(isBesideOurs(at ?? "")).toBe(true);
  expect(whereIs("no-such-plugin", [directory])).toBeUndefined();
});

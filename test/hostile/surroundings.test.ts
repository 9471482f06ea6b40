import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, executables, scratch, variables } from "../conformance/plugin.ts";
import { startCommand } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";

const pipette = join(executables, "pipette");
const marker = "executed";

/** A working directory with everything in it that a runtime of JavaScript, a linker or a shell might take up. */
function hostileDirectory(root: string): string {
  const here = join(root, "here");
  const evil = `require("node:fs").writeFileSync(${JSON.stringify(join(root, marker))}, "")`;
  const files: Readonly<Record<string, string>> = {
    ".env": "CNI_COMMAND=VERSION\nBUN_OPTIONS=--preload=./evil.js\n",
    ".env.local": "CNI_COMMAND=VERSION\n",
    ".env.production": "CNI_COMMAND=VERSION\n",
    "bunfig.toml": 'preload = ["./evil.js"]\n',
    ".bunfig.toml": 'preload = ["./evil.js"]\n',
    "package.json": '{ "name": "pipette", "type": "commonjs", "main": "evil.js", "imports": { "#x": "./evil.js" } }',
    "tsconfig.json": '{ "compilerOptions": { "paths": { "*": ["./evil.js"] } } }',
    "evil.js": evil,
    "main.ts": evil,
    "node_modules/yaml/index.js": evil,
    "node_modules/@grpc/grpc-js/index.js": evil,
    "agent.yaml": "networks: []",
    pipette: `#!/bin/sh\ntouch ${join(root, marker)}\n`,
    "host-local": `#!/bin/sh\ntouch ${join(root, marker)}\n`,
    ip: `#!/bin/sh\ntouch ${join(root, marker)}\n`,
    nft: `#!/bin/sh\ntouch ${join(root, marker)}\n`,
    "libc.so.6": "no library",
    "libsqlite3.so.0": "no library",
    "leases.db": "no database",
  };
  for (const [name, text] of Object.entries(files)) {
    const path = join(here, name);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, text);
    chmodSync(path, 0o755);
  }
  return here;
}

const confOf = (root: string, type = "pipette-ipam") => ({
  cniVersion: "1.1.0",
  name: "n",
  type: "pipette",
  // Nobody is there, and nobody comes.
  socket: join(root, "none.sock"),
  addTimeoutMs: 100,
  ipam: { type, dataDir: join(root, "data"), ranges: [[{ subnet: "10.79.0.0/24" }]] },
});

describeWith("where it is started, and with what environment", ["root", "linux", "strace"], () => {
  beforeAll(compileExecutables);

  const faces: readonly (readonly [string, readonly string[], Readonly<Record<string, string | undefined>>])[] = [
    ["pipette-ipam, ADD", [`${pipette}-ipam`], variables("ADD")],
    ["pipette, ADD", [pipette], variables("ADD")],
    ["pipette, DEL", [pipette], variables("DEL")],
    ["pipette agent --check", [pipette, "agent", "--check", "--config", "/none.yaml"], {}],
    [
      "pipette install --dry-run",
      [
        pipette,
        "install",
        "--dry-run",
        "--no-service",
        "--subnet=10.1.0.0/24",
        "--bin-dir=/none",
        "--config=/none.yaml",
      ],
      {},
    ],
    ["pipette ipam list", [pipette, "ipam", "list", "--data-dir", "/none"], {}],
    ["pipette status", [pipette, "status", "--config", "/none.yaml"], {}],
  ];

  test.each(faces)("%s looks at nothing in its working directory", async (_, command, env) => {
    using directory = scratch();
    const here = hostileDirectory(directory.path);
    const trace = join(directory.path, "trace");
    const traced = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=%file", "-o", trace, ...command];
    const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined)) as Record<
      string,
      string
    >;
    const ended = await startCommand(traced, given, JSON.stringify(confOf(directory.path)), here).ended;
    expect(ended.status, ended.stderr).not.toBeNull();
    const lines = readFileSync(trace, "utf8").split("\n");
    expect(lines.length).toBeGreaterThan(10);
    const named = lines.flatMap(
      (line) => /^\d+ +(?!execve|getcwd)\w+\((?:[\w-]+, )?"([^"]*)"/.exec(line)?.slice(1) ?? [],
    );
    // An empty name is that of an open file.
    const suspicious = named.filter((name) => name !== "" && (!name.startsWith("/") || name.startsWith(here)));
    expect(suspicious).toEqual([]);
    expect(existsSync(join(directory.path, marker))).toBe(false);
  });

  test("a variable of CNI_ARGS or a key of the configuration becomes none of the process or of its delegate", async () => {
    using directory = scratch();
    const here = hostileDirectory(directory.path);
    const bin = join(directory.path, "bin");
    mkdirSync(bin);
    writeFileSync(
      join(bin, "teller"),
      `#!/bin/sh\nenv > ${directory.path}/env\necho '{"cniVersion":"1.1.0","ips":[]}'\n`,
    );
    chmodSync(join(bin, "teller"), 0o755);
    const options = `--preload=${join(here, "evil.js")}`;
    const env = variables("ADD", {
      CNI_PATH: bin,
      CNI_ARGS: `IgnoreUnknown=1;BUN_OPTIONS=${options};LD_PRELOAD=/evil.so`,
    });
    const conf = { ...confOf(directory.path, "teller"), env: { BUN_OPTIONS: options }, BUN_OPTIONS: options };
    await startCommand([pipette], env as Record<string, string>, JSON.stringify(conf), here).ended;
    const told = readFileSync(join(directory.path, "env"), "utf8").split("\n");
    expect(told.filter((line) => /^(BUN|NODE|LD)_/.test(line))).toEqual([]);
    expect(existsSync(join(directory.path, marker))).toBe(false);
  });

  test.each([
    "NODE_OPTIONS=--require=EVIL",
    "NODE_PATH=HERE/node_modules",
    "BUN_PRELOAD=EVIL",
    "BUN_CONFIG_PRELOAD=EVIL",
    "BUN_CONFIG_FILE=HERE/bunfig.toml",
    "BUN_INSPECT_PRELOAD=EVIL",
    "BUN_INSTALL=HERE",
    "XDG_CONFIG_HOME=HERE",
    "HOME=HERE",
    "PATH=HERE",
    "TMPDIR=HERE",
  ])("%s in its environment runs nothing of others and leaves nothing", async (setting) => {
    using directory = scratch();
    const here = hostileDirectory(directory.path);
    const before = readdirSync(here, { recursive: true }).length;
    const [name = "", value = ""] = setting
      .replace("EVIL", join(here, "evil.js"))
      .replace("HERE", here)
      .split(/=(.*)/s);
    const env = { ...(variables("ADD") as Record<string, string>), [name]: value };
    const ended = await startCommand([`${pipette}-ipam`], env, JSON.stringify(confOf(directory.path)), here).ended;
    expect(ended).toMatchObject({ status: 0, stderr: "" });
    expect(existsSync(join(directory.path, marker))).toBe(false);
    expect(readdirSync(here, { recursive: true })).toHaveLength(before);
  });
});

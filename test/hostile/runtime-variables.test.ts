import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { seal, sealedVariables } from "../../build/seal.ts";
import { compileExecutables, executables, scratch } from "../conformance/plugin.ts";
import { ScriptedApiServer } from "../fakes/kubernetes/scripted-api-server.ts";
import { compileUnsealed } from "../support/compile-unsealed.ts";
import { describeWith } from "../support/requires.ts";

/** What can be seen of one run from outside. */
interface Seen {
  readonly status: number | undefined;
  readonly said: string;
  readonly files: readonly string[];
  /** Who connected to the socket that a debugger would listen on. */
  readonly connections: number;
  /** Whether its parent's death is to be its own. */
  readonly tied: boolean;
}

const token = "token-of-this-node";

describeWith("Bun's own variables in the environment", ["linux", "root", "openssl", "strace"], () => {
  const directory = scratch();
  const at = (name: string): string => join(directory.path, name);
  let unsealed: string;
  let server: ScriptedApiServer;
  let connections = 0;
  let debuggerSide: Bun.UnixSocketListener<undefined>;

  beforeAll(async () => {
    compileExecutables();
    unsealed = await compileUnsealed(directory.path, "pipette");
    for (const name of ["own", "other"]) await certificate(name);
    server = await ScriptedApiServer.start({ cert: read("own.pem"), key: read("own.key") });
    server.put("n1", ["10.79.1.0/24"], "192.0.2.1");
    writeFileSync(at("token"), token, { mode: 0o600 });
    for (const name of ["own", "other"]) writeFileSync(at(`${name}.yaml`), JSON.stringify(configuration(name)));
    writeFileSync(at("preload.js"), `require("node:fs").writeFileSync(${JSON.stringify(at("seen/preloaded"))}, "")`);
    debuggerSide = Bun.listen({
      unix: at("debugger.sock"),
      socket: {
        open: () => {
          connections++;
        },
        data: () => undefined,
      },
    });
  });
  afterAll(async () => {
    debuggerSide?.stop(true);
    await server?.[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });

  const read = (name: string): string => readFileSync(at(name), "utf8");

  const certificate = (name: string) =>
    execa("openssl", [
      ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
      ...["-subj", `/CN=${name}`, "-addext", "subjectAltName=IP:127.0.0.1"],
      ...["-keyout", at(`${name}.key`), "-out", at(`${name}.pem`)],
    ]);

  const configuration = (authority: string) => ({
    networks: [{ name: "pods", bridge: "pt0" }],
    nodes: {
      name: "n1",
      registry: { type: "kubernetes", server: server.url, token: at("token"), ca: at(`${authority}.pem`) },
    },
  });

  /** `pipette nodes list`: it asks a server by HTTPS, with a secret, and ends. */
  async function seen(program: string, env: Readonly<Record<string, string>>, authority = "own"): Promise<Seen> {
    await execa("rm", ["-rf", at("seen")]);
    await execa("mkdir", [at("seen")]);
    const before = connections;
    const traced = ["-f", "-qq", "-e", "trace=prctl", "-e", "signal=none", "-o", at("trace"), program];
    const listing = ["nodes", "list", "--config", at(`${authority}.yaml`)];
    // In a directory of its own: Bun takes some of these for names of files there.
    const options = { env, extendEnv: false, cwd: at("seen"), reject: false, all: true, timeout: 30_000 } as const;
    const { exitCode, all } = await execa("/usr/bin/strace", [...traced, ...listing], options);
    return {
      status: exitCode,
      said: all,
      files: readdirSync(at("seen")).sort(),
      connections: connections - before,
      tied: read("trace").includes("PR_SET_PDEATHSIG"),
    };
  }

  const obeyed: Readonly<Record<(typeof sealedVariables)[number] | `BUN_JSC_${string}`, (at: string) => string>> = {
    BUN_OPTIONS: (root) => `--preload=${root}/preload.js`,
    BUN_BE_BUN: () => "1",
    BUN_INSPECT: (root) => `ws+unix://${root}/seen/inspector.sock`,
    BUN_INSPECT_CONNECT_TO: (root) => `unix://${root}/debugger.sock`,
    BUN_BYTECODE_ORDER_OUT: (root) => `${root}/seen/order`,
    BUN_BYTECODE_DIGEST_OUT: (root) => `${root}/seen/digest`,
    BUN_FEATURE_FLAG_NO_ORPHANS: () => "1",
    SIMDUTF_FORCE_IMPLEMENTATION: () => "none",
    BUN_JSC_dumpOptions: () => "1",
    BUN_JSC_useJIT: () => "none",
  };

  test.each(Object.entries(obeyed))("%s changes what Bun does, and nothing here", async (name, valueAt) => {
    const env = { [name]: valueAt(directory.path) };
    const usual = await seen(unsealed, {});
    expect(usual.said).toMatch(/^n1 +ready /m);
    // The variable is one, and has the effect that is not wanted.
    expect(await seen(unsealed, env)).not.toEqual(usual);
    expect(await seen(join(executables, "pipette"), env)).toEqual(usual);
  });

  test("every name that is taken out has been tried", () => {
    expect(Object.keys(obeyed)).toEqual(expect.arrayContaining([...sealedVariables]));
  });

  test("a program that is not as expected is not called sealed", () => {
    expect(() => seal(Buffer.from("BUN_OPTIONS\0BUN_OPTIONS\0"), "x64")).toThrow(
      /"BUN_OPTIONS".*it is there 2 times, wanted once/,
    );
    expect(() => seal(readFileSync(join(executables, "pipette")), "x64")).toThrow(/it is there 0 times, wanted once/);
  });

  test("a token is printed nowhere, whatever BUN_CONFIG_VERBOSE_FETCH says", async () => {
    const { status, said } = await seen(join(executables, "pipette"), { BUN_CONFIG_VERBOSE_FETCH: "curl" });
    expect([status, said.includes(token)], said).toEqual([0, false]);
  });

  test.each([
    { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    { NODE_EXTRA_CA_CERTS: "own.pem" },
    { SSL_CERT_FILE: "own.pem", NODE_USE_SYSTEM_CA: "1" },
    { SSL_CERT_DIR: ".", NODE_USE_SYSTEM_CA: "1" },
  ])("a registry whose certificate is another authority's gets no token, whatever %o says", async (variables) => {
    const env = Object.entries(variables).map(([name, value]) => [name, value === "own.pem" ? at(value) : value]);
    server.authorizations.clear();
    const { status, said } = await seen(join(executables, "pipette"), Object.fromEntries(env), "other");
    expect([status, [...server.authorizations]]).toEqual([1, []]);
    expect(said).toMatch(/certificate/i);
  });
});

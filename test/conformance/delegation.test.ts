import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { describeWith } from "../support/requires.ts";
import { compileExecutables, errorOf, resultOf, run, scratch, variables } from "./plugin.ts";
import { refusing, startScriptedAgent } from "./scripted-agent.ts";

const address = '{"cniVersion":"1.0.0","ips":[{"address":"10.9.0.7/24","gateway":"10.9.0.1"}],"dns":{}}';
const add = `case $CNI_COMMAND in ADD) echo '${address}';; esac`;

beforeAll(compileExecutables);

/** A directory for CNI_PATH with a shell script "scripted" that notes each call and then does `body`. */
function scriptedDelegate(body: string) {
  const directory = scratch();
  const bin = `${directory.path}/bin`;
  mkdirSync(bin);
  const log = `${directory.path}/calls`;
  const note = `cat >"${directory.path}/stdin.$CNI_COMMAND"; env >"${directory.path}/env.$CNI_COMMAND"; echo $CNI_COMMAND >>${log}`;
  writeFileSync(`${bin}/scripted`, `#!/bin/sh\n${note}\n${body}\n`);
  chmodSync(`${bin}/scripted`, 0o755);
  const read = (name: string): string => readFileSync(`${directory.path}/${name}`, "utf8");
  return {
    path: directory.path,
    bin,
    calls: () => (existsSync(log) ? read("calls").trim().split("\n") : []),
    read,
    [Symbol.dispose]: () => directory[Symbol.dispose](),
  };
}

const confWith = (socket: string, dataDir: string, more: object = {}) => ({
  cniVersion: "1.1.0",
  name: "n",
  type: "pipette",
  socket,
  dataDir,
  ipam: { type: "scripted" },
  ...more,
});

describe("section 4 Plugin Delegation", () => {
  test("the delegate gets the complete configuration and the whole environment", async () => {
    using delegate = scriptedDelegate(add);
    await using agent = await startScriptedAgent();
    const stdin = confWith(agent.socket, delegate.path, { "x-unknown": [1.5], args: { a: "b" } });
    const env = { ...variables("ADD", { CNI_PATH: `/nonexistent:${delegate.bin}` }), SOMETHING: "of the runtime's" };
    expect(resultOf(await run({ env, stdin }))).toMatchObject({ ips: [{ address: "10.9.0.7/24" }] });
    expect(delegate.read("stdin.ADD")).toBe(JSON.stringify(stdin));
    const given = delegate.read("env.ADD").split("\n");
    for (const [name, value] of Object.entries(env)) expect(given).toContain(`${name}=${value}`);
  });

  test("the agent gets the delegate's result beside the configuration, unchanged", async () => {
    using delegate = scriptedDelegate(add);
    await using agent = await startScriptedAgent();
    const stdin = confWith(agent.socket, delegate.path);
    await run({ env: variables("ADD", { CNI_PATH: delegate.bin }), stdin });
    const { ipamResult, ...rest } = JSON.parse(String(agent.asked[0]?.request["network_configuration"]));
    expect(rest).toEqual(stdin);
    expect(ipamResult).toEqual({ cniVersion: "1.1.0", ips: [{ address: "10.9.0.7/24", gateway: "10.9.0.1" }] });
  });

  test("its stderr is passed on", async () => {
    using delegate = scriptedDelegate(`echo "two words" >&2; ${add}`);
    await using agent = await startScriptedAgent();
    const env = variables("ADD", { CNI_PATH: delegate.bin });
    const ended = await run({ env, stdin: confWith(agent.socket, delegate.path) });
    expect([ended.status, ended.stderr]).toEqual([0, "two words\n"]);
  });

  test("a failed ADD is followed by a DEL, and its error is passed on with its code", async () => {
    const error = '{"cniVersion":"1.0.0","code":137,"msg":"The pool is closed","details":"until noon"}';
    using delegate = scriptedDelegate(`test $CNI_COMMAND = DEL || { echo '${error}'; exit 1; }`);
    await using agent = await startScriptedAgent();
    const env = variables("ADD", { CNI_PATH: delegate.bin });
    const failed = errorOf(await run({ env, stdin: confWith(agent.socket, delegate.path) }));
    expect(failed).toMatchObject({ code: 137, msg: "The pool is closed", cniVersion: "1.1.0" });
    expect(failed.details).toContain("until noon");
    expect(failed.details).toContain('"scripted"');
    expect(delegate.calls()).toEqual(["ADD", "DEL"]);
    expect(agent.asked).toEqual([]);
  });

  test("an agent that refuses after the delegate's ADD is followed by a DEL", async () => {
    using delegate = scriptedDelegate(add);
    await using agent = await startScriptedAgent(refusing(102, "The bridge is down"));
    const env = variables("ADD", { CNI_PATH: delegate.bin });
    const failed = errorOf(await run({ env, stdin: confWith(agent.socket, delegate.path) }));
    expect(failed).toMatchObject({ code: 102, msg: "The bridge is down" });
    expect(delegate.calls()).toEqual(["ADD", "DEL"]);
  });

  test.each([
    ["CHECK", { prevResult: { cniVersion: "1.1.0", ips: [] } }],
    ["DEL", {}],
    ["GC", { "cni.dev/valid-attachments": [{ containerID: "c9", ifname: "eth0" }] }],
    ["STATUS", {}],
  ])("%s is passed on, and so is its failure", async (verb, more) => {
    using delegate = scriptedDelegate(`test -e "$OKAY" || { echo '{"code":7,"msg":"not to my taste"}'; exit 2; }`);
    await using agent = await startScriptedAgent();
    const stdin = confWith(agent.socket, delegate.path, more);
    const env = variables(verb, { CNI_PATH: delegate.bin });
    expect(errorOf(await run({ env, stdin }))).toMatchObject({ code: 7, msg: "not to my taste" });
    expect((await run({ env: { ...env, OKAY: "/" }, stdin })).status).toBe(0);
    expect(delegate.calls()).toEqual([verb, verb]);
    expect(delegate.read(`stdin.${verb}`)).toBe(JSON.stringify(stdin));
  });

  test("on DEL the agent goes first: no address is free while its interface stands", async () => {
    using delegate = scriptedDelegate("");
    let callsSeenByAgent: readonly string[] | undefined;
    await using agent = await startScriptedAgent(() => {
      callsSeenByAgent = delegate.calls();
      return {};
    });
    const env = variables("DEL", { CNI_PATH: delegate.bin });
    expect((await run({ env, stdin: confWith(agent.socket, delegate.path) })).status).toBe(0);
    expect([callsSeenByAgent, delegate.calls()]).toEqual([[], ["DEL"]]);
  });

  test("a delegate that hangs is met by the deadline and killed, its children's hold on its output notwithstanding", async () => {
    using delegate = scriptedDelegate(`test $CNI_COMMAND = DEL || { sleep 8 & wait; }`);
    await using agent = await startScriptedAgent();
    const stdin = confWith(agent.socket, delegate.path, { addTimeoutMs: 700 });
    const ended = await run({ env: variables("ADD", { CNI_PATH: delegate.bin }), stdin });
    const failed = errorOf(ended);
    expect(failed.code).toBe(11);
    expect(failed.msg).toContain("700 ms");
    expect(ended.ms).toBeLessThan(8000);
    expect(delegate.calls()).toEqual(["ADD", "DEL"]);
  });

  test.each([
    ["junk", "echo junk", 6, ['the result of the IPAM plugin "scripted"', "wanted one JSON object"]],
    ["nothing", "true", 6, ["it is empty"]],
    ["a result without addresses", `echo '{"cniVersion":"1.0.0"}'`, 101, ["no address"]],
    ["an address that is none", `echo '{"ips":[{"address":"10.9.0.7"}]}'`, 6, ['"ips[0].address" is "10.9.0.7"']],
    ["a failure with junk", "echo junk; echo why >&2; exit 3", 101, ["status 3", "junk"]],
    ["death by a signal", "kill -9 $$", 101, ["SIGKILL"]],
  ])("a delegate that answers %s gets a clear error", async (_, body, code, says) => {
    using delegate = scriptedDelegate(`test $CNI_COMMAND = DEL || { ${body}; }`);
    await using agent = await startScriptedAgent();
    const env = variables("ADD", { CNI_PATH: delegate.bin });
    const failed = errorOf(await run({ env, stdin: confWith(agent.socket, delegate.path) }));
    expect(failed.code).toBe(code);
    for (const part of says) expect(failed.msg).toContain(part);
    expect(delegate.calls()).toEqual(["ADD", "DEL"]);
  });

  test.each([
    ["0.2.0", '{"cniVersion":"0.2.0","ip4":{"ip":"10.9.0.7/24","gateway":"10.9.0.1"}}'],
    ["0.4.0", '{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.9.0.7/24","gateway":"10.9.0.1"}]}'],
    ["no version", '{"ips":[{"address":"10.9.0.7/24","gateway":"10.9.0.1"}]}'],
  ])("a delegate of an older make may answer in %s", async (_, result) => {
    using delegate = scriptedDelegate(`echo '${result}'`);
    await using agent = await startScriptedAgent();
    const env = variables("ADD", { CNI_PATH: delegate.bin });
    const added = resultOf(await run({ env, stdin: confWith(agent.socket, delegate.path) }));
    expect(added).toMatchObject({ cniVersion: "1.1.0", ips: [{ address: "10.9.0.7/24", gateway: "10.9.0.1" }] });
  });

  test("a delegate that is in none of CNI_PATH's directories is named with them; a DEL's error is one to retry", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const stdin = confWith(agent.socket, directory.path);
    for (const verb of ["ADD", "DEL"]) {
      const failed = errorOf(await run({ env: variables(verb, { CNI_PATH: directory.path }), stdin }));
      expect(failed.msg).toContain('"scripted"');
      expect(failed.msg).toContain(directory.path);
      expect(JSON.stringify(failed)).not.toMatch(/not found|no such file or directory/i);
    }
  });

  test("a relative directory in CNI_PATH is not searched", async () => {
    using delegate = scriptedDelegate(add);
    await using agent = await startScriptedAgent();
    const env = variables("ADD", { CNI_PATH: "bin" });
    const ended = await run({ env, cwd: delegate.path, stdin: confWith(agent.socket, delegate.path) });
    expect(errorOf(ended).code).toBe(4);
    expect(delegate.calls()).toEqual([]);
  });

  test("peers runner-up not-found: the words by which containerd would drop a DEL are kept out of the delegate's error", async () => {
    using delegate = scriptedDelegate(
      `echo '{"code":5,"msg":"lease not found","details":"x: No such file or directory"}'; exit 1`,
    );
    await using agent = await startScriptedAgent();
    const env = variables("DEL", { CNI_PATH: delegate.bin });
    const failed = errorOf(await run({ env, stdin: confWith(agent.socket, delegate.path) }));
    expect(failed.code).toBe(5);
    expect(JSON.stringify(failed)).not.toMatch(/not found|no such file or directory/i);
  });
});

describeWith("section 4 Plugin Delegation to Debian's plugins", ["cni-plugins"], () => {
  test("host-local gives, checks and frees the address", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const ipam = { type: "host-local", dataDir: `${directory.path}/hl`, ranges: [[{ subnet: "10.9.0.0/24" }]] };
    const conf = { ...confWith(agent.socket, directory.path), cniVersion: "1.0.0", ipam };
    const added = resultOf(await run({ env: variables("ADD"), stdin: conf }));
    expect(added).toMatchObject({ cniVersion: "1.0.0", ips: [{ address: "10.9.0.2/24", gateway: "10.9.0.1" }] });
    expect(existsSync(`${directory.path}/hl/n/10.9.0.2`)).toBe(true);
    expect((await run({ env: variables("CHECK"), stdin: { ...conf, prevResult: added } })).status).toBe(0);
    expect((await run({ env: variables("DEL"), stdin: { ...conf, prevResult: added } })).status).toBe(0);
    expect(existsSync(`${directory.path}/hl/n/10.9.0.2`)).toBe(false);
    const failed = errorOf(await run({ env: variables("CHECK"), stdin: { ...conf, prevResult: added } }));
    expect(failed.details).toContain('"host-local"');
  });

  test("static gives the address that the configuration has", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const ipam = { type: "static", addresses: [{ address: "10.9.0.9/24", gateway: "10.9.0.1" }] };
    const stdin = { ...confWith(agent.socket, directory.path), cniVersion: "1.0.0", ipam };
    const added = resultOf(await run({ env: variables("ADD"), stdin }));
    expect(added).toMatchObject({ ips: [{ address: "10.9.0.9/24", gateway: "10.9.0.1" }] });
    expect((await run({ env: variables("DEL"), stdin })).status).toBe(0);
  });

  test("dhcp without its daemon fails with its own error", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const ipam = { type: "dhcp", daemonSocketPath: `${directory.path}/no.sock` };
    const stdin = { ...confWith(agent.socket, directory.path), cniVersion: "1.0.0", ipam };
    const failed = errorOf(await run({ env: variables("ADD"), stdin }));
    expect(failed.msg).toContain("dial");
    expect(failed.details).toContain('"dhcp"');
    expect(agent.asked).toEqual([]);
  });

  test("a version that a delegate does not speak is its error, passed on", async () => {
    using directory = scratch();
    await using agent = await startScriptedAgent();
    const ipam = { type: "host-local", dataDir: `${directory.path}/hl`, ranges: [[{ subnet: "10.9.0.0/24" }]] };
    const stdin = { ...confWith(agent.socket, directory.path), ipam };
    const failed = errorOf(await run({ env: variables("ADD"), stdin }));
    expect(failed).toMatchObject({ code: 1, cniVersion: "1.1.0" });
    expect(failed.details).toContain('"host-local"');
  });
});

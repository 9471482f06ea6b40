import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OpenVswitch } from "../../overlay/open-vswitch.ts";
import { NetworkSandbox } from "../../support/network-sandbox.ts";
import { describeWith } from "../../support/requires.ts";
import { describeWine } from "../wine/describe-wine.ts";

const program = "C:\\test\\program.exe";
const pipe = "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchdb.sock";
const port = "6660";

describeWith("the database through a pipe of Windows", ["root", "openvswitch"], () => {
  let sandbox: NetworkSandbox;
  let ovs: OpenVswitch;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ovsdb-");
    ovs = await OpenVswitch.start("database");
    await ovs.databaseControl("ovsdb-server/add-remote", `ptcp:${port}:127.0.0.1`);
  });
  afterAll(async () => {
    await ovs?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  describeWine("in Wine", (wine) => {
    beforeAll(() => {
      wine.prefix.write(program, "");
      const at = wine.prefix.unixPath(program);
      rmSync(at);
      const source = join(import.meta.dirname, "ovsdb-pipe-program.ts");
      const flags = ["build", "--compile", "--minify", "--target=bun-windows-x64"];
      execFileSync(process.execPath, [...flags, source, "--outfile", at], { cwd: dirname(at) });
    });
    const start = (...args: string[]) => wine.prefix.start(wine.prefix.unixPath(program), { args });

    test("is found by the path that the pipe stands for, and again after the pipe was gone", async () => {
      await using client = start("client", "unix:C:/openvswitch/var/run/openvswitch/db.sock");
      await client.saying("connecting fails with ENOENT");
      await using relay = start("relay", pipe, port);
      await client.saying('{"owner":"网络"}', 30_000);
      expect(await ovs.vsctl("get", "Interface", "pod1", "external_ids:owner")).toBe('"网络"');
      relay.kill("SIGKILL");
      await client.saying(/"pausing","reason":"(the server has closed|the connection broke)/);
      await ovs.vsctl("--no-wait", "add-port", "br-int", "pod2");
      await using _ = start("relay", pipe, port);
      expect(await client.ended).toMatchObject({ status: 0, stderr: "" });
      expect(client.stdout).toContain('{"seen":"pod2","ports":3}');
    });

    test("no other end than a pipe is looked for on Windows", async () => {
      const ended = await start("client", "unix:/run/openvswitch/db.sock").ended;
      expect(ended.status).toBe(1);
      expect(ended.stderr).toMatch(/Cannot connect to a database: the address is "unix:\/run/);
    });
  });
});

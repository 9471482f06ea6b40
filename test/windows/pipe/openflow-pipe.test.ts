import { execFileSync } from "node:child_process";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OpenFlowBridge } from "../../overlay/openflow-bridge.ts";
import { describeWith } from "../../support/requires.ts";
import { describeWine } from "../wine/describe-wine.ts";

const program = "C:\\test\\program.exe";
const pipe = "\\\\.\\pipe\\C:openvswitchvarrunopenvswitchbr-int.mgmt";

describeWith("a switch through a pipe of Windows", ["root", "openvswitch"], () => {
  let bridge: OpenFlowBridge;

  beforeAll(async () => {
    bridge = await OpenFlowBridge.start();
    await bridge.vswitch.vsctl("set-controller", "br-int", "ptcp:6653:127.0.0.1");
  });
  afterAll(() => bridge?.[Symbol.asyncDispose]());

  describeWine("in Wine", (wine) => {
    beforeAll(() => {
      wine.prefix.write(program, "");
      const at = wine.prefix.unixPath(program);
      rmSync(at);
      const source = join(import.meta.dirname, "openflow-pipe-program.ts");
      const flags = ["build", "--compile", "--minify", "--target=bun-windows-x64"];
      execFileSync(process.execPath, [...flags, source, "--outfile", at], { cwd: dirname(at) });
    });
    const start = (...args: string[]) => wine.prefix.start(wine.prefix.unixPath(program), { args });

    test("is found by the path that the pipe stands for, takes a bundle and lists it, and is lost with the pipe", async () => {
      const early = await start("client", "unix:C:/openvswitch/var/run/openvswitch/br-int.mgmt").ended;
      expect(early.stderr).toContain(`Cannot connect to "${pipe}"`);
      await using relay = start("relay", pipe, "6653");
      await relay.saying("relays");
      await using client = start("client", "unix:C:/openvswitch/var/run/openvswitch/br-int.mgmt");
      await client.saying('{"flows":3001,"first":"cookie=0x1, table=70, reg3=0x1 actions=output:1"}', 30_000);
      expect(await bridge.dumpFlows()).toHaveLength(3001);
      relay.kill("SIGKILL");
      expect(await client.ended).toMatchObject({ status: 0, stderr: "" });
      expect(client.stdout).toContain("Cannot go on with the switch: ");
    });
  });
});

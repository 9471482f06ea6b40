import { copyFileSync, mkdirSync } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { compileSmallProgram } from "../../build/forward.ts";
import { bridgeName, eventually, networkName } from "../support/agent-process.ts";
import { startCommand } from "../support/cni-call.ts";
import { ownProgram } from "../support/own-program.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { WhyNode } from "./why-node.ts";

describeWith("why a pod has no network, with what stands before or behind the agent at fault", ["root", "nft"], () => {
  let node: WhyNode;

  beforeAll(async () => {
    node = await WhyNode.enter();
  });
  afterEach(() => node.clear());
  afterAll(() => node?.[Symbol.asyncDispose]());

  describeWith("the small program", ["gcc", "musl"], () => {
    test("has lost its whole one, and no agent answers it", async () => {
      const agent = await node.start();
      await agent.end();
      using place = scratchDir();
      const outfile = join(place.path, "small");
      const wholeProgram = join(place.path, "pipette", "pipette");
      const places = { agentSocket: node.home.socket, ipamSocket: join(place.path, "ipam.sock"), wholeProgram };
      const buildId = "000102030405060708090a0b0c0d0e0f";
      await compileSmallProgram({ system: "linux", buildId, places, outfile, sanitized: false });
      const event = await node.plugin({}, { program: [outfile] });
      // The agent is away as well, and starting it is not what helps.
      expect(await node.why("cart", "--event", event)).toMatchObject({
        ...{ status: 1, code: "whole-program-lost", todo: [expect.stringContaining("pipette install")] },
        evidence: [expect.stringContaining(`Cannot start "${wholeProgram}": errno 2`)],
      });
      mkdirSync(dirname(wholeProgram));
      copyFileSync(outfile, wholeProgram);
      const itself = await node.plugin({}, { program: [outfile] });
      expect(await node.why("cart", "--event", itself)).toMatchObject({
        ...{ status: 1, code: "whole-program-lost" },
        evidence: [expect.stringContaining("is the small program")],
      });
    });
  });

  test("more clients than it may have: its log tells of them where it does not answer, and not of why it ended", async () => {
    const descriptors = 128;
    const agent = await node.start({}, ["prlimit", `--nofile=${descriptors}:${descriptors}`]);
    using clients = new DisposableStack();
    for (let i = 0; i < descriptors; i++) {
      const one = connect(node.home.socket);
      one.on("error", () => undefined);
      clients.defer(() => one.destroy());
      await new Promise((resolve) => one.once("connect", resolve).once("close", resolve));
    }
    await agent.logged(({ message }) => message === "connections were ended to make room for others");
    // Pods have their network all the same.
    expect((await node.add("cart")).answer.error).toBeUndefined();
    expect(await node.why("cart")).toMatchObject({ status: 0, result: "fine" });
    {
      using _ = await agent.held();
      const told = await node.why("cart");
      expect(told).toMatchObject({
        status: 1,
        code: "connections-ended",
        todo: ["find out who connects: only root can"],
      });
      expect(told.evidence[0]).toMatch(/^the agent's log.*connections were ended to make room for others/);
    }
    await agent.end("SIGKILL");
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "agent-away" });
  });

  test("a DEL that succeeded without it: the interface stays, the doctor names it, and the next agent ends it", async () => {
    const agent = await node.start();
    const { id, netns } = await node.add("cart");
    await agent.end();
    const links = (): Promise<string> => node.sandbox.node(`ip -br link show master ${bridgeName}`);
    expect(await links()).not.toBe("");
    const env = { CNI_COMMAND: "DEL", CNI_CONTAINERID: id, CNI_NETNS: netns, CNI_IFNAME: "eth0", CNI_PATH: "/" };
    const { socket, dataDir, configFile } = node.home;
    const conf = { cniVersion: "1.0.0", name: networkName, type: "pipette", socket, dataDir, delTimeoutMs: 500 };
    expect(await startCommand(ownProgram, env, JSON.stringify(conf)).ended).toMatchObject({ status: 0, stdout: "" });
    expect(await links()).not.toBe("");
    expect(await node.why("cart")).toMatchObject({ status: 1, code: "agent-away" });
    const [file = "", ...words] = node.home.command;
    const doctor = await execa(file, [...words, "doctor", "--once", "--json", "--config", configFile], {
      reject: false,
    });
    const { findings } = JSON.parse(doctor.stdout) as { findings: { code: string; what: string; todo: string }[] };
    expect(findings.filter(({ code }) => code === "departing")).toEqual([
      expect.objectContaining({ what: expect.stringContaining(id), todo: expect.stringContaining("agent") }),
    ]);
    node.home.change({ janitorIntervalMs: 200 });
    node.running = await node.home.start();
    await eventually(async () => (await links()) === "", "the interface to go");
  });

  test("a pod that sends with an address that is not its own: the command that it is told counts the drops", async () => {
    await node.start();
    const { netns } = await node.add("cart");
    const { result, todo } = await node.why("cart");
    expect([result, todo]).toEqual(["fine", [expect.stringContaining("nft list table bridge pipette-BRIDGE")]]);
    const drops = async (): Promise<number> => {
      const rules = await node.sandbox.node(`nft list table bridge pipette-${bridgeName}`);
      return [...rules.matchAll(/counter packets (\d+)[^\n]*drop/g)].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const before = await drops();
    await node.sandbox.pod(netns, "ip address add 10.78.99.99/16 dev eth0 nodad");
    await node.sandbox.pod(netns, "ping -c 1 -W 1 -I 10.78.99.99 10.78.0.1").catch(() => undefined);
    expect(await drops()).toBeGreaterThan(before);
  });
});

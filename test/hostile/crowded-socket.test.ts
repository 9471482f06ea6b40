import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { limits } from "../../shared/limits.ts";
import { nodeService } from "../../shared/proto/services.ts";
import { compileExecutables, executables, resultOf, run, variables } from "../conformance/plugin.ts";
import { AgentHome, type AgentProcess } from "../support/agent-process.ts";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { describeWith } from "../support/requires.ts";

const program = new URL("clients-program.ts", import.meta.url).pathname;
/** Of one process: what it may open is bounded as well. */
const clientsEach = 2_500;
/** The agent's own: database, netlink, log, and what it has open for a moment. */
const ownDescriptors = 60;

/** Clients that want nothing; see the program. */
class Clients implements AsyncDisposable {
  readonly #processes: Bun.Subprocess<"pipe", "pipe", "inherit">[] = [];

  static async connect(socket: string, count: number, manner: string): Promise<Clients> {
    const clients = new Clients();
    for (let left = count; left > 0; left -= clientsEach) {
      const command = [process.execPath, program, socket, String(Math.min(left, clientsEach)), manner];
      clients.#processes.push(Bun.spawn(command, { stdin: "pipe", stdout: "pipe", stderr: "inherit" }));
    }
    await Promise.all(clients.#processes.map(connected));
    return clients;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const client of this.#processes) client.kill("SIGKILL");
    await Promise.all(this.#processes.map((client) => client.exited));
  }
}

async function connected(client: Bun.Subprocess<"pipe", "pipe", "inherit">): Promise<void> {
  for await (const line of createInterface(Readable.fromWeb(client.stdout as never))) if (line === "ready") return;
  throw new Error("The clients have ended before they were connected");
}

const descriptorsOf = (agent: AgentProcess): number => readdirSync(`/proc/${agent.pid}/fd`).length;

describeWith("on a socket with a crowd that wants nothing", ["root", "linux"], () => {
  let home: AgentHome;
  let agent: AgentProcess;
  let pod: NetworkNamespace;
  let quietMb: number;

  async function begin(descriptors: number): Promise<void> {
    home = new AgentHome({}, executables, ["prlimit", `--nofile=${descriptors}:${descriptors}`, "unshare", "--net"]);
    agent = await home.start();
    pod = NetworkNamespace.create();
    await pods(1);
    quietMb = agent.residentMb();
  }

  /** Real plugins: each must succeed, and has its own bound on the time that it takes. */
  async function pods(count: number): Promise<void> {
    const stdin = { cniVersion: "1.0.0", name: "pods", type: "pipette", socket: home.socket, dataDir: home.dataDir };
    for (let i = 0; i < count; i++) {
      const env = (verb: string) => variables(verb, { CNI_CONTAINERID: `c${i}`, CNI_NETNS: pod.path });
      expect(resultOf(await run({ env: env("ADD"), stdin }))).toMatchObject({ ips: [{}, {}] });
      resultOf(await run({ env: env("DEL"), stdin }));
    }
  }

  async function end(): Promise<void> {
    pod[Symbol.dispose]();
    expect(await agent.end()).toBe(0);
    await home[Symbol.asyncDispose]();
  }

  beforeAll(async () => {
    compileExecutables();
    await begin(8_192);
  });
  afterAll(end);

  /** More than requests may hold, the largest buffers of sockets, and what waits to be collected. */
  const roomMb = (2 * limits.requestBytesHeld) / 1024 ** 2 + 160;

  test.each([
    ["silent", 10_000],
    ["half", 1_000],
    ["drip", 1_000],
    ["heavy", 1_000],
    ["headers", 1_000],
    ["deaf", 1_000],
  ])(
    "%s clients, %i of them: pods get their network, descriptors and memory stay bounded, and come back",
    async (manner, count) => {
      {
        await using _ = await Clients.connect(home.socket, count, manner);
        await pods(3);
        expect(descriptorsOf(agent)).toBeLessThan(limits.connections + ownDescriptors);
        // What was read and dropped since is collected a moment later.
        await expect.poll(() => agent.residentMb()).toBeLessThan(quietMb + roomMb);
      }
      await expect.poll(() => descriptorsOf(agent)).toBeLessThan(ownDescriptors);
    },
  );

  const slowest = async (ask: () => Promise<void>): Promise<number> => {
    let ms = 0;
    for (let i = 0; i < 5; i++) {
      const started = performance.now();
      await ask();
      ms = Math.max(ms, performance.now() - started);
    }
    return ms;
  };

  /** By a process of its own, which takes as long as the machine is busy. */
  async function statusOfProgram(): Promise<void> {
    const program = join(executables, "pipette");
    const { exitCode, stderr } = await execa(program, ["status", "--socket", home.socket], { reject: false });
    expect(exitCode, stderr).toBe(0);
  }

  /** It may take longer than the program waits where the machine is busy. */
  async function statusOfCall(): Promise<void> {
    await home.call(nodeService.status, { network: "" }, 60_000);
  }

  // Of what waits in one row, the first of these would be behind twenty thousand others.
  test.each([
    ["windowless", 20],
    ["few", 2_000],
    ["eager", 20],
  ])(
    "%s clients, %i of them, with twenty thousand calls: another's call does not wait for theirs",
    async (manner, count) => {
      const idle = await slowest(statusOfProgram);
      await using _ = await Clients.connect(home.socket, count, manner);
      expect(await slowest(statusOfCall)).toBeLessThan(15 * idle);
      await pods(1);
    },
  );

  test("more clients than the system lets it have descriptors: pods get their network all the same", async () => {
    await end();
    await begin(512);
    await using _ = await Clients.connect(home.socket, 2_000, "silent");
    await pods(3);
    expect(descriptorsOf(agent)).toBeLessThan(256 + ownDescriptors);
    expect(agent.stderr).not.toContain("EMFILE");
  });
});

import { rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { uptimeMs } from "../shared/os/uptime.ts";
import { answer, type Behaviour, buildId, ForwardLab } from "../test/fakes/forward/forward-lab.ts";
import { describeWith } from "../test/support/requires.ts";

/** The states CONNECT, SEND and WAIT of README.md, with servers that behave, and others. */

const says =
  (...parts: Buffer[]): Behaviour =>
  (socket) =>
    socket.write(Buffer.concat(parts));
const ends =
  (...parts: Buffer[]): Behaviour =>
  (socket) =>
    socket.end(Buffer.concat(parts));
/** One byte after the other, each in a packet of its own. */
async function drip(socket: Socket, bytes: Buffer, pauseMs: number): Promise<void> {
  for (let i = 0; i < bytes.length && !socket.destroyed; i++) {
    socket.write(bytes.subarray(i, i + 1));
    await Bun.sleep(pauseMs);
  }
}
const done = answer("done", { stdout: "{}\n" });
const taken = (moreMs: number): Buffer => answer("taken", { moreMs });

const builds = [
  ["as it is delivered", false],
  ["with the sanitizers", true],
] as const;

for (const [how, sanitized] of builds) {
  describeWith(`a forwarded call, ${how}`, ["linux", "root", "gcc", "musl"], () => {
    const lab = new ForwardLab();
    beforeAll(() => lab.compile(sanitized));
    afterEach(() => lab.clear());
    afterAll(() => lab.remove());

    test("sends variables, standard input, times and build, and nothing else of the environment", async () => {
      const seen = await lab.serve(says(done));
      const env = { CNI_COMMAND: "ADD", CNI_IFNAME: "eth0", HOME: "/root", TRACEPARENT: "00-1", CNIX: "1", CNI_: "" };
      const before = Math.floor(uptimeMs()! * 1000);
      expect(await lab.call({ env, stdin: "{ }" })).toMatchObject({ status: 0, stdout: "{}\n", stderr: "" });
      const [request = Buffer.alloc(0)] = seen.requests;
      const variables = request.subarray(48, -3);
      const started = request.readBigUInt64LE(16);
      expect(request.subarray(0, 4)).toEqual(Buffer.from([0, 0x50, 0x46, 1]));
      expect(variables.toString().split("\0").sort()).toEqual(
        ["", "CNI_=", "CNI_COMMAND=ADD", "CNI_IFNAME=eth0", "TRACEPARENT=00-1"].sort(),
      );
      expect([4, 8, 12].map((at) => request.readUInt32LE(at))).toEqual([variables.length, 3, 0]);
      expect(Number(started)).toBeGreaterThanOrEqual(before);
      expect(Number(started)).toBeLessThanOrEqual(uptimeMs()! * 1000);
      expect(request.readBigUInt64LE(24)).toBe(started + 1_000_000n);
      expect(request.subarray(32, 48).toString("hex")).toBe(buildId);
      expect(request.subarray(-3).toString()).toBe("{ }");
    });

    test("ends as the server says: standard output, standard error, status", async () => {
      const stdout = `{"code":7,"msg":"${"ü".repeat(100_000)}"}\n`;
      await lab.serve(ends(answer("done", { status: 1, stdout, stderr: "a line\n" })));
      expect(await lab.call()).toMatchObject({ status: 1, signal: null, stdout, stderr: "a line\n" });
      lab.clear();
      const longest = new Uint8Array(4 * 1024 * 1024 - 1).fill(97);
      await lab.serve(says(answer("done", { status: 255, stdout: longest, stderr: "e" })));
      expect(await lab.call()).toMatchObject({ status: 255, stdout: Buffer.from(longest).toString(), stderr: "e" });
    });

    test.each<readonly [string, Behaviour]>([
      ["byte by byte", (socket) => drip(socket, done, 1)],
      ["with more behind it", says(done, Buffer.from("more"))],
      [
        "in mid-answer stopped, and going on",
        async (socket) => {
          socket.write(done.subarray(0, 25));
          await Bun.sleep(200);
          socket.write(done.subarray(25));
        },
      ],
      ["after it was taken", says(taken(20_000), done)],
      [
        "much later after it was taken",
        async (socket) => {
          socket.write(taken(20_000));
          await Bun.sleep(1500);
          socket.write(done);
        },
      ],
    ])("takes an answer %s", async (_, behaviour) => {
      const seen = await lab.serve(behaviour);
      expect(await lab.call()).toMatchObject({ status: 0, stdout: "{}\n" });
      expect(seen.requests).toHaveLength(1);
    });

    test.each<readonly [string, Behaviour]>([
      ["passes", says(answer("pass"))],
      ["takes it, and then passes", says(taken(5000), answer("pass"))],
      ["is an older one, of HTTP/2", ends(Buffer.from("000008070000000000000000000000000001", "hex"))],
      ["says only a byte, of something else", ends(Buffer.from("P"))],
    ])("is run by the whole program as one that nobody was asked for where the server %s", async (_, behaviour) => {
      const seen = await lab.serve(behaviour);
      const { whole } = await lab.call();
      expect(whole?.arguments.slice(1, 3)).toEqual(["--forwarded", "unasked"]);
      expect(whole?.arguments[3]).toBe(String(seen.requests[0]?.readBigUInt64LE(16)));
    });

    test.each<readonly [string, Behaviour]>([
      ["ends after the request", ends()],
      ["resets", (socket) => socket.resetAndDestroy()],
      ["speaks something else after it took the call", says(taken(5000), Buffer.from("P"))],
      ["ends in the mark", ends(done.subarray(0, 3))],
      ["ends in the header", ends(done.subarray(0, 23))],
      ["ends in the text", ends(done.subarray(0, 26))],
      ["ends after it took the call", ends(taken(5000))],
      ["takes the call twice", says(taken(5000), taken(5000))],
      ["takes it for longer than anybody may ask", says(taken(600_001), done)],
      ["takes it for no time", says(taken(0), done)],
      ["speaks of a longer text than there may be", says(answer("done", { stdoutBytes: 4 * 1024 * 1024 + 1 }))],
      [
        "speaks of two texts that are too long together",
        says(answer("done", { stdoutBytes: 2 ** 22, stderrBytes: 1 })),
      ],
      ["speaks of lengths that overflow", says(answer("done", { stdoutBytes: 2 ** 32 - 1, stderrBytes: 2 ** 32 - 1 }))],
      ["speaks of a text that does not come", ends(answer("done", { stdout: "{}", stdoutBytes: 3 }))],
      ["answers a status that no process has", says(answer("done", { status: 256 }))],
      ["answers a time with the result", says(answer("done", { moreMs: 1 }))],
      ["passes with a text", says(answer("pass", { stdout: "{}" }))],
      ["answers what there is not", says(answer(4))],
      ["answers nothing that there is", says(answer(0))],
      ["speaks another version", says(Buffer.from([0, 0x50, 0x41, 2]), done.subarray(4))],
    ])("is run by the whole program as lost where the server %s", async (_, behaviour) => {
      const seen = await lab.serve(behaviour);
      const { whole, stderr, ms } = await lab.call({ stdin: '{"a":1}' });
      expect(stderr).toBe("");
      expect(whole?.arguments.slice(1, 3)).toEqual(["--forwarded", "lost"]);
      expect(whole?.arguments[3]).toBe(String(seen.requests[0]?.readBigUInt64LE(16)));
      expect(whole?.stdinBytes).toBe(7);
      // Nobody waits out a time for what is known.
      expect(ms).toBeLessThan(5000);
    });

    test.each<readonly [string, Behaviour, number]>([
      ["is silent", () => undefined, 1000],
      ["says a byte now and then", (socket) => drip(socket, done, 300), 1000],
      ["takes it for a while and is silent", says(taken(1500)), 1500],
    ])("is lost in time where the server %s", async (_, behaviour, wantedMs) => {
      const seen = await lab.serve(behaviour);
      const { whole, ms } = await lab.call();
      expect(whole?.arguments[2]).toBe("lost");
      expect(ms).toBeGreaterThanOrEqual(wantedMs - 1);
      await expect.poll(() => seen.ended).toBe(1);
    });

    test("goes on where the process was stopped meanwhile", async () => {
      await lab.serve(async (socket) => {
        await Bun.sleep(300);
        socket.write(done);
      });
      const child = lab.start({});
      await Bun.sleep(100);
      child.kill("SIGSTOP");
      await Bun.sleep(50);
      child.kill("SIGCONT");
      expect(await child.stdout.text()).toBe("{}\n");
      expect(await child.exited).toBe(0);
    });

    test("ends with a signal, which the server sees", async () => {
      const seen = await lab.serve(says(taken(60_000)));
      const child = lab.start({});
      await expect.poll(() => seen.requests.length).toBe(1);
      child.kill("SIGTERM");
      await child.exited;
      expect(child.signalCode).toBe("SIGTERM");
      await expect.poll(() => seen.ended).toBe(1);
    });

    test.each([
      ["there is no socket", () => undefined],
      ["there is a plain file", () => writeFileSync(lab.places.agentSocket, "")],
    ])("is run by the whole program where %s", async (_, prepare) => {
      prepare();
      expect((await lab.call()).whole?.arguments.slice(1, 3)).toEqual(["--forwarded", "unasked"]);
      rmSync(lab.places.agentSocket, { force: true });
    });

    test("sends nothing to a server that is not root's", async () => {
      const socket = join(lab.directory, "theirs", "cni.sock");
      const said = await lab.listener(socket, 65534, "open");
      const program = await lab.variant({ agentSocket: socket });
      expect((await lab.call({}, program)).whole?.arguments[2]).toBe("unasked");
      await expect.poll(said).toBe("ready\nconnected\nended\n");
    });

    test("waits a quarter of a second where the listener's queue is full", async () => {
      await lab.listener(lab.places.agentSocket, 0, "full");
      const { whole, ms } = await lab.call();
      expect(whole?.arguments[2]).toBe("unasked");
      expect(ms).toBeGreaterThanOrEqual(249);
      expect(ms).toBeLessThan(5000);
    });

    test("as pipette-ipam it asks the IPAM service, and the agent where there is none", async () => {
      const agent = await lab.serve(says(done));
      expect((await lab.call({ name: "pipette-ipam" })).status).toBe(0);
      expect(agent.requests[0]?.readUInt32LE(12)).toBe(1);
      const service = await lab.serve(says(answer("pass")), lab.places.ipamSocket);
      // Who passes has said what there is to say.
      expect((await lab.call({ name: "/opt/cni/bin\\PIPETTE-ipam.exe" })).whole?.arguments[2]).toBe("unasked");
      expect(service.requests[0]?.readUInt32LE(12)).toBe(1);
      expect(agent.requests).toHaveLength(1);
      for (const name of ["pipette-ipam2", "xpipette-ipam", "", "pipette-ipam/"]) await lab.call({ name });
      expect(agent.requests.slice(1).map((request) => request.readUInt32LE(12))).toEqual([0, 0, 0, 0]);
    });
  });
}

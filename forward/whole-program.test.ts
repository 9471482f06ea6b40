import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { answer, ForwardLab, sumOf, type Whole } from "../test/fakes/forward/forward-lab.ts";
import { describeWith } from "../test/support/requires.ts";

/** The states START, READ and LOCAL of README.md: what the whole program is executed with; and how a call ends. */

const kib = 1024;
const letters = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => 97 + (i % 26));

for (const [how, sanitized] of [
  ["as it is delivered", false],
  ["with the sanitizers", true],
] as const) {
  describeWith(`the small program, ${how},`, ["linux", "root", "gcc", "musl"], () => {
    const lab = new ForwardLab();
    beforeAll(() => lab.compile(sanitized));
    afterEach(() => lab.clear());
    afterAll(() => lab.remove());

    const serveDone = () => lab.serve((socket) => socket.write(answer("done", { stdout: "{}\n" })));

    test("becomes the whole one under its own name, with the environment as it came", async () => {
      const env = { CNI_COMMAND: "DEL", CNI_NETNS: "", HOME: "/root", LD_PRELOAD_: "x" };
      const { whole, status } = await lab.call({ env, name: "any/pipette-ipam", arguments: ["ignored"] });
      expect(status).toBe(7);
      expect(whole?.arguments).toEqual(["any/pipette-ipam", "--forwarded", "unasked", expect.stringMatching(/^\d+$/)]);
      expect(whole?.variables.filter((one) => !one.startsWith("ASAN")).sort()).toEqual(
        ["CNI_COMMAND=DEL", "CNI_NETNS=", "HOME=/root", "LD_PRELOAD_=x"].sort(),
      );
    });

    test("without CNI_COMMAND is the whole one at once, arguments and standard input as they came", async () => {
      const seen = await serveDone();
      const shell = 'unset CNI_COMMAND; exec -a pipette "$@"';
      const { whole } = await lab.call({ shell, arguments: ["status", "--json"], stdin: "text" });
      expect(whole?.arguments).toEqual(["pipette", "status", "--json"]);
      expect(whole?.stdinBytes).toBe(4);
      expect(seen.requests).toHaveLength(0);
    });

    test.each([0, 1, 64 * kib - 1, 64 * kib])("forwards %i bytes of standard input", async (length) => {
      const seen = await serveDone();
      expect((await lab.call({ stdin: letters(length) })).stdout).toBe("{}\n");
      const [request = Buffer.alloc(0)] = seen.requests;
      expect(request.readUInt32LE(8)).toBe(length);
      expect(sumOf(request.subarray(request.length - length))).toBe(sumOf(letters(length)));
    });

    test.each([64 * kib + 1, 200 * kib, 1024 * kib])("hands %i bytes over whole, and asks nobody", async (length) => {
      const seen = await serveDone();
      const { whole } = await lab.call({ stdin: letters(length) });
      expect([whole?.stdinBytes, whole?.stdinSum]).toEqual([length, sumOf(letters(length))]);
      expect(whole?.arguments[2]).toBe("unasked");
      expect(seen.requests).toHaveLength(0);
    });

    test("hands over of 10 MB what the whole program needs to refuse them", async () => {
      const shell = 'head -c 10000000 /dev/zero | "$@"';
      const { whole } = await lab.call({ shell });
      expect(whole?.stdinBytes).toBeGreaterThan(1024 * kib);
      expect(whole?.stdinBytes).toBeLessThan(1100 * kib);
    });

    test.each([
      ["in parts", '(printf "{"; sleep 0.2; printf "}") | "$@"', 2],
      ["from a file", 'echo "{}" >f; "$@" <f', 3],
      [
        "of a pipe that does not wait",
        `(sleep 0.3; printf "{}") | perl -e 'use Fcntl; fcntl(STDIN, F_SETFL, O_NONBLOCK); exec @ARGV' "$@"`,
        2,
      ],
      ["closed before the start", '"$@" <&-', 0],
    ])("takes standard input %s", async (_, shell, length) => {
      const env = { PATH: "/usr/bin:/bin" };
      const { whole } = await lab.call({ shell: `cd ${lab.directory}; ${shell}`, env });
      expect(whole?.stdinBytes).toBe(length);
      const seen = await serveDone();
      expect((await lab.call({ shell: `cd ${lab.directory}; ${shell}`, env })).stdout).toBe("{}\n");
      expect(seen.requests[0]?.readUInt32LE(8)).toBe(length);
    });

    test("leaves what cannot be read to the whole program", async () => {
      const seen = await serveDone();
      const { whole } = await lab.call({ shell: '"$@" </', arguments: ["word"] });
      expect(whole?.arguments.slice(1)).toEqual(["word"]);
      expect(seen.requests).toHaveLength(0);
    });

    test.each<readonly [string, Record<string, string>]>([
      ["70 kB of it", { CNI_ARGS: "a".repeat(70_000) }],
      ["more of it than fits, together", { CNI_ARGS: "a".repeat(40_000), CNI_PATH: "b".repeat(40_000) }],
      ["65 variables", Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`CNI_${i}`, "x"]))],
    ])("asks nobody where the environment has %s, and keeps it", async (_, env) => {
      const seen = await serveDone();
      const { whole } = await lab.call({ env, stdin: "as it came", arguments: ["word"] });
      const bytes = Object.entries(env).reduce((sum, [name, value]) => sum + name.length + value.length + 2, 0);
      expect(whole?.environmentBytes).toBeGreaterThanOrEqual(bytes);
      expect([whole?.arguments.slice(1), whole?.stdinBytes]).toEqual([["word"], 10]);
      expect(seen.requests).toHaveLength(0);
    });

    test("forwards 64 kB of environment, of which other programs' do not count", async () => {
      const seen = await serveDone();
      const rest = 64 * kib - "CNI_COMMAND=ADD".length - "CNI_ARGS=".length - 2;
      expect((await lab.call({ env: { CNI_ARGS: "a".repeat(rest), OTHER: "b".repeat(rest) } })).stdout).toBe("{}\n");
      expect(seen.requests[0]?.readUInt32LE(4)).toBe(64 * kib);
    });

    test("leaves a variable that comes twice to the whole program", async () => {
      const seen = await serveDone();
      const { whole } = await lab.call({ shell: `exec -a twice ${lab.standIn} "$@"` });
      expect(whole?.variables).toEqual(["CNI_COMMAND=ADD", "CNI_IFNAME=eth0", "CNI_IFNAME=eth1"]);
      expect(seen.requests).toHaveLength(0);
    });

    test("leaves the whole program no descriptor of its own, and signals as they were", async () => {
      await lab.serve((socket) => socket.end());
      const lost = await lab.call();
      expect(lost.whole).toMatchObject({ descriptors: [0, 1, 2], ignored: 0n });
      const shell = `trap "" PIPE; "$@" 9</dev/null`;
      expect((await lab.call({ shell })).whole).toMatchObject({ descriptors: [0, 1, 2, 9], ignored: 1n << 12n });
    });

    const sigpipe = 1n << 12n;
    const isDefault = (whole: Whole | undefined): boolean => ((whole?.ignored ?? sigpipe) & sigpipe) === 0n;

    test("keeps a runtime's closed descriptors out of the call", async () => {
      const seen = await serveDone();
      for (const closed of ["<&-", ">&-", "2>&-", "<&- >&-", "<&- >&- 2>&-"]) {
        const { stdout } = await lab.call({ shell: `"$@" ${closed}; echo "status $?"` });
        expect(stdout, closed).toBe(
          closed.includes(">&-") && !closed.startsWith("2") ? "status 0\n" : "{}\nstatus 0\n",
        );
      }
      // Each has sent its request, and not its own output behind it.
      expect(
        seen.requests.map((request) => request.length - request.readUInt32LE(4) - request.readUInt32LE(8)),
      ).toEqual([48, 48, 48, 48, 48]);
      lab.clear();
      const { whole } = await lab.call({ shell: '"$@" <&- 2>&-' });
      expect([whole?.stdinBytes, isDefault(whole)]).toEqual([0, true]);
    });

    test.each([
      ["is full", '"$@" >/dev/full; echo $?'],
      ["has no reader", '{ sleep 0.2; "$@"; echo $? >&3; } | true'],
    ])("fails with a word where standard output %s", async (_, shell) => {
      await lab.serve((socket) => socket.write(answer("done", { status: 1, stdout: '{"code":7}\n' })));
      const { stdout, stderr } = await lab.call({ shell: `exec 3>&1; ${shell}`, env: { PATH: "/usr/bin:/bin" } });
      expect(stdout).toBe("1\n");
      expect(stderr).toMatch(/^Cannot write the result to standard output: (ENOSPC|EPIPE), wanted .*\n\{"code":7\}\n$/);
    });

    test("writes all of a long answer into a pipe that does not wait, and loses nothing where nobody hears its log", async () => {
      const stdout = "r".repeat(1_000_000);
      await lab.serve((socket) => socket.write(answer("done", { stdout, stderr: "log\n" })));
      const slow = `perl -e 'use Fcntl; fcntl(STDOUT, F_SETFL, O_NONBLOCK); exec @ARGV' "$@" | (sleep 0.3; cat)`;
      const env = { PATH: "/usr/bin:/bin" };
      expect((await lab.call({ shell: slow, env })).stdout).toBe(stdout);
      expect(await lab.call({ shell: '"$@" 2>/dev/full', env })).toMatchObject({ status: 0, stdout });
    });

    test("answers a CNI error where the whole program is missing, or is itself", async () => {
      const missing = await lab.variant({ wholeProgram: "/nonexistent/pipette" });
      const ended = await lab.call({ env: { CNI_COMMAND: "DEL" } }, missing);
      expect(ended.status).toBe(1);
      expect(JSON.parse(ended.stdout)).toEqual({
        cniVersion: "1.1.0",
        code: 5,
        msg: 'Cannot start "/nonexistent/pipette": errno 2',
      });
      const copy = join(lab.directory, "copy");
      const itself = await lab.variant({ wholeProgram: copy });
      copyFileSync(itself, copy);
      expect(JSON.parse((await lab.call({}, itself)).stdout)).toMatchObject({
        code: 5,
        msg: expect.stringContaining("small program"),
      });
    });
  });
}

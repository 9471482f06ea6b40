import { readFileSync, rmSync } from "node:fs";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { bridgeName, openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";

const program = new URL("./killed-agent.ts", import.meta.url).pathname;
const mark = "/pipette-mark";

/** The calls by which the kernel gets changed: netlink requests, and the way into a sandbox and back. */
const killedAt = ["sendto", "setns"];

describeWith("bridge data path: an agent killed in the middle", ["root", "strace"], () => {
  let sandbox: NetworkSandbox;
  let pod: string;
  const trace = `/tmp/pt-kd-${process.pid}`;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-kd-");
    pod = await sandbox.addPod();
  });
  afterAll(async () => {
    rmSync(trace, { force: true });
    await sandbox[Symbol.asyncDispose]();
  });

  /** Runs the program; answers the signal that ended it, if one did. */
  async function run(...options: string[]): Promise<string | undefined> {
    const args = ["-f", ...options, process.execPath, program, pod, mark];
    const done = await execa("strace", args, { reject: false, env: { BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" } });
    return done.signal;
  }

  /** Name and number of every call of the main thread between the marks, counted from the program's start. */
  async function killPoints(): Promise<readonly { name: string; nth: number }[]> {
    // The first run makes the bridge, which the others find: only then do the counts agree.
    for (let i = 0; i < 2; i++) expect(await run("-o", trace)).toBeUndefined();
    const points: { name: string; nth: number }[] = [];
    const counts = new Map<string, number>();
    const lines = readFileSync(trace, "utf8").split("\n");
    const main = lines[0]?.split(" ")[0] ?? "";
    let marks = 0;
    for (const line of lines) {
      const name = /^(\d+) +(\w+)\(/.exec(line);
      if (name?.[1] !== main || name[2] === undefined) continue;
      if (line.includes(mark) && name[2] !== "execve") marks++;
      const nth = (counts.get(name[2]) ?? 0) + 1;
      counts.set(name[2], nth);
      if (marks === 1 && killedAt.includes(name[2])) points.push({ name: name[2], nth });
    }
    expect(marks).toBe(2);
    return points;
  }

  const pairs = async (): Promise<unknown[]> => JSON.parse(await sandbox.node("ip -j link show type veth"));

  test("whatever a killed ADD or DEL left, the next agent's ADD completes it and its DEL leaves nothing", async () => {
    const points = await killPoints();
    expect(points.length).toBeGreaterThan(10);
    const found = new Set<string>();
    for (const { name, nth } of points) {
      for (const next of ["ADD", "DEL"]) {
        const at = `killed at ${name} ${nth}, then ${next}`;
        const signal = await run(
          "-o",
          "/dev/null",
          "-e",
          `trace=${name}`,
          "-e",
          `inject=${name}:signal=KILL:when=${nth}`,
        );
        expect.soft(signal, at).toBe("SIGKILL");
        await using dataPath = openDataPath();
        const before = (await pairs()).length;
        await dataPath.start();
        found.add(`${before} before and ${(await pairs()).length} after start`);
        if (next === "ADD") {
          const request = requestFor("killed", pod, 10);
          const result = await dataPath.attach(request);
          await dataPath.check(request.owner, pod, result);
          expect.soft(await dataPath.attach(request), at).toEqual(result);
        }
        await dataPath.detach(ownerOf("killed"));
        await dataPath[Symbol.asyncDispose]();
        expect.soft(await pairs(), at).toEqual([]);
        expect.soft(await sandbox.node("nft list ruleset"), at).not.toContain("elements");
        expect.soft(JSON.parse(await sandbox.pod(pod, "ip -j link")), at).toHaveLength(1);
      }
    }
    // Nothing made yet; made without name; named; marked for deletion: all were met.
    expect([...found].sort()).toEqual([
      "0 before and 0 after start",
      "1 before and 0 after start",
      "1 before and 1 after start",
    ]);
    await sandbox.node(`ip link del ${bridgeName}`);
  });
});

import { join } from "node:path";
import { afterEach, beforeAll, expect, test } from "vitest";
import { compileExecutable } from "../../../build/bundle.ts";
import { parseCidr } from "../../../shared/net/ip.ts";
import { fillStore } from "../../support/filled-store.ts";
import { brokenInvariants } from "../../support/invariants.ts";
import { describeWine } from "../wine/describe-wine.ts";
import { PipeLab, pipe } from "./pipe-lab.ts";

const parallel = 8;
const source = join(import.meta.dirname, "../programs/ipam-calls.ts");

describeWine("the exported client at the allocator's pipe", (wine) => {
  const lab = new PipeLab(wine);
  let program = "";
  beforeAll(async () => {
    await lab.compileTool();
    program = wine.prefix.unixPath("C:\\ipam-calls.exe");
    await compileExecutable({ entry: source, base: "bun-windows-x64", outfile: program });
  });
  afterEach(() => lab.clear());

  const call = (name: string, count: number) =>
    wine.prefix.start(program, { args: [pipe, name, String(count)], timeoutMs: 60_000 });
  /** The database as it lies on drive C. */
  const broken = (dataDir: string): readonly string[] =>
    brokenInvariants(wine.prefix.unixPath(`${dataDir}\\leases.db`));
  const names = Array.from({ length: parallel }, (_, i) => `client-${i}`);

  test("in 8 processes at once takes, looks up, gives back and lists", async () => {
    await lab.serve({ dataDir: "C:\\eight" });
    const ends = await Promise.all(names.map((name) => call(name, 10).ended));
    const said = ends.map(({ status, stdout, stderr }) => {
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      return JSON.parse(stdout) as { address: string; seen: number };
    });
    expect(new Set(said.map(({ address }) => address)).size).toBe(parallel);
    expect(Math.max(...said.map(({ seen }) => seen))).toBeGreaterThanOrEqual(parallel);
    expect(broken("C:\\eight")).toEqual([]);
  });

  test("goes on with the next service where one is killed, and no address is lost or doubled", async () => {
    const first = await lab.serve({ dataDir: "C:\\killed" });
    const clients = names.map((name) => call(name, 80));
    await Bun.sleep(1_500);
    first.kill("SIGKILL");
    await first.ended.catch(() => undefined);
    expect(clients.some(({ hasEnded }) => hasEnded)).toBe(false);
    await lab.serve({ dataDir: "C:\\killed" });
    const ends = await Promise.all(clients.map(({ ended }) => ended));
    expect(ends.map(({ status, stderr }) => ({ status, stderr }))).toEqual(ends.map(() => ({ status: 0, stderr: "" })));
    expect(new Set(ends.map(({ stdout }) => JSON.parse(stdout).address)).size).toBe(parallel);
    expect(broken("C:\\killed")).toEqual([]);
  });

  test("sends nothing to a process without an administrator's rights, nor to one that takes the pipe of its server", async () => {
    const first = await lab.serve({ dataDir: "C:\\taken" });
    // More than it can do in the second that follows.
    const client = call("client", 5_000);
    await Bun.sleep(1_000);
    first.kill("SIGKILL");
    const taker = await lab.restrictedServer();
    const refusal =
      /process \d+, which serves the pipe, runs as ".+" \(S-1-5-21-[\d-]+\) without the rights of an administrator, wanted one that/;
    expect(await client.ended).toMatchObject({ status: 1, stderr: expect.stringMatching(refusal) });
    const command = await wine.prefix.start(lab.pipette, { args: ["status", "--socket", pipe] }).ended;
    expect(command).toMatchObject({ status: 1, stderr: expect.stringMatching(refusal) });
    expect(taker.stdout).not.toContain("heard");
  });

  test("reads a list of 20000 leases", async () => {
    const filling = { network: "net", subnet: parseCidr("10.88.0.0/16")!, leases: 20_000, shape: "packed" } as const;
    await fillStore(wine.prefix.unixPath("C:\\many"), filling);
    await lab.serve({ dataDir: "C:\\many" });
    const { status, stdout } = await call("reader", 0).ended;
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ seen: 20_001 });
  });
});

import { afterEach, beforeEach, expect, test } from "vitest";
import { limits } from "../../shared/limits.ts";
import type { HostedCall } from "../../shared/server/forward/run-forwarded.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { Allocator } from "../allocator.ts";
import { writeRecord } from "../host-local/record.ts";
import { type ForwardingServer, ipamRunner } from "./forwarded.ts";

let scratch: ReturnType<typeof scratchDir>;
let allocator: Allocator;

beforeEach(async () => {
  scratch = scratchDir();
  allocator = await Allocator.open(scratch.path);
  allocator.transaction((store): void => writeRecord(store, "net", { t: "none" }));
});
afterEach(() => {
  allocator[Symbol.dispose]();
  scratch[Symbol.dispose]();
});

class Passed extends Error {}

/** What a server did with a call, in order, and what it answered. */
async function run(command: string, ipam: object, more: Partial<ForwardingServer> = {}, top: object = {}, agedMs = 0) {
  const told: string[] = [];
  const written: string[] = [];
  const hosted: Pick<HostedCall, "agedMs" | "pass" | "lose" | "take"> = {
    agedMs: () => agedMs,
    pass: () => {
      told.push("pass");
      throw new Passed();
    },
    lose: (cause) => {
      told.push("lose");
      throw cause;
    },
    take: (timeoutMs) => void told.push(`take ${timeoutMs}`),
  };
  const conf = {
    cniVersion: "1.1.0",
    name: "net",
    ipam: { type: "pipette-ipam", dataDir: scratch.path, ...ipam },
    ...top,
  };
  const verb = command === "STATUS" ? {} : { CNI_CONTAINERID: "c1", CNI_IFNAME: "eth0", CNI_NETNS: "/run/netns/x" };
  const status = await ipamRunner({ allocator, dataDir: scratch.path, ...more })(
    {
      env: { CNI_COMMAND: command, CNI_PATH: "/opt/cni/bin", ...verb },
      readStdin: async () => new TextEncoder().encode(JSON.stringify(conf)),
      writeResult: async (line) => void written.push(line),
      log: () => undefined,
    },
    hosted as HostedCall,
  );
  return { status, told, text: written.join() };
}
const sets = (count: number) => ({
  ranges: Array.from({ length: count }, (_, i) => [{ subnet: `10.${i + 1}.0.0/24` }]),
});
const taken = `take ${limits.addTimeoutMs}`;

test("a server runs the verbs of its own data directory, and takes each call before it changes anything", async () => {
  expect(await run("ADD", sets(1))).toMatchObject({
    status: 0,
    told: [taken],
    text: expect.stringContaining("10.1.0.2"),
  });
  expect(
    (await run("CHECK", sets(1), {}, { prevResult: { cniVersion: "1.1.0", ips: [{ address: "10.1.0.2/24" }] } })).told,
  ).toEqual([taken]);
  expect(await run("DEL", sets(1))).toMatchObject({ status: 0, told: [taken] });
  expect(allocator.list().map(({ state }) => state)).toEqual(["cooling"]);
});

test.each<readonly [string, string, object, Partial<ForwardingServer>]>([
  ["while it does not serve", "ADD", sets(1), { isReady: () => false }],
  ["of another data directory", "ADD", sets(1), { dataDir: "/other" }],
  ["of a data directory that is none", "ADD", { dataDir: 5 }, {}],
  ["that reads a file of the caller's", "ADD", { ...sets(1), resolvConf: "/etc/resolv.conf" }, {}],
  ["that takes long", "ADD", sets(17), {}],
  ["with a mistake, which takes long to explain", "ADD", { rangs: [] }, {}],
])("a call is its caller's: one %s", async (_what, command, ipam, more) => {
  const { told } = await run(command, ipam, more);
  expect(told).toEqual(["pass"]);
  expect(allocator.list()).toEqual([]);
});

test("a GC that has waited for the server frees nobody who came meanwhile", async () => {
  await run("ADD", sets(1));
  const gc = (agedMs: number) => run("GC", sets(1), {}, { "cni.dev/valid-attachments": [] }, agedMs);
  expect(await gc(60_000)).toMatchObject({ status: 0, told: [taken] });
  expect(allocator.list().map(({ state }) => state)).toEqual(["allocated"]);
  // So that it was given before a list that is new.
  await Bun.sleep(2);
  expect(await gc(0)).toMatchObject({ status: 0, told: [taken] });
  expect(allocator.list().map(({ state }) => state)).toEqual(["cooling"]);
});

test("as many sets as take no time are the server's", async () => {
  expect(await run("ADD", sets(16))).toMatchObject({ status: 0, told: [taken] });
});

test.each([
  ["ADD", "exported 3 /var/lib/cni/networks/net", ["pass"]],
  ["DEL", "exported 3 /var/lib/cni/networks/net", ["pass"]],
  ["ADD", undefined, ["pass"]],
  ["ADD", "taken 3 /var/lib/cni/networks/net", [taken]],
  ["STATUS", "exported 3 /var/lib/cni/networks/net", []],
])("a network that may have leases of host-local is the caller's: %s, %s", async (command, mark, told) => {
  allocator.transaction((store): void => store.setMark("host-local net", mark));
  expect((await run(command, sets(1))).told).toEqual(told);
});

test("damage is for another process to repair", async () => {
  const broken = Object.assign(new Error("malformed"), { errcode: 11 });
  const lend = () => {
    throw broken;
  };
  const damaged = { mark: () => "none", lend } as unknown as Allocator;
  expect((await run("ADD", sets(1), { allocator: damaged })).told).toEqual([taken, "lose"]);
});

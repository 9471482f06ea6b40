import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { AgentHome } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { type Plant, plants, stranger, Victim } from "./planted.ts";

/** Where the agent makes something, what can stand there before, and what it says of that; nothing: it starts all the same. */
const places: readonly (readonly [at: string, planted: readonly Plant[], says: RegExp | undefined])[] = [
  ["run/cni.sock.lock", ["link", "link to nothing", "hard link", "pipe", "file of another"], /^Cannot lock socket/],
  [
    "run/cni.sock",
    ["link", "link to nothing", "hard link", "pipe", "file of another"],
    /^Cannot listen on .*no socket/,
  ],
  [
    "data/agent.lock",
    ["link", "link to nothing", "hard link", "pipe", "file of another"],
    /^Cannot lock data directory/,
  ],
  ["data/leases.db", ["link", "link to nothing", "pipe", "file of another"], /^Cannot use the lease database/],
  // A rename takes the place of whatever stands there.
  ["net.d/10-pipette.conflist", ["link", "link to nothing", "hard link", "pipe", "file of another"], undefined],
];

const directories: readonly (readonly [at: string, says: RegExp])[] = [
  ["run", /^Cannot listen on .*: its directory (belongs to user 65534|can be written by others)/],
  ["data", /^Cannot use the lease database .*: its directory (belongs to user 65534|can be written by others)/],
];

/** One start of the agent, alone in a network of its own, after `plant`. @returns its last word, or that it is ready */
async function startAfter(plant: (home: AgentHome, victim: Victim) => void): Promise<readonly [string, AgentHome]> {
  const home = new AgentHome({}, executables, ["unshare", "--net"]);
  for (const name of ["run", "data", "net.d"]) mkdirSync(join(home.directory, name), { mode: 0o755 });
  const victim = new Victim(join(home.directory, "shadow"));
  plant(home, victim);
  const agent = home.spawn();
  const isWord = (line: Readonly<Record<string, unknown>>): boolean =>
    line["message"] === "ready" || line["level"] === "error";
  const { message } = await agent.logged(isWord);
  expect(await agent.end()).toBe(message === "ready" ? 0 : 1);
  expect(victim.harm()).toEqual([]);
  return [String(message), home];
}

describeWith("the agent starts, and before it another user", ["root", "linux"], () => {
  beforeAll(compileExecutables);

  test.each(places)("has put something at %s: it is left alone, and nothing hangs", async (at, planted, says) => {
    const tried = planted.map(async (plant) => {
      const [word, home] = await startAfter(({ directory }, { path }) => plants[plant](join(directory, at), path));
      await using _ = home;
      expect(word, plant).toMatch(says ?? /^ready$/);
      if (says === undefined) expect(JSON.parse(readFileSync(join(home.directory, at), "utf8")).name).toBe("pods");
    });
    await Promise.all(tried);
  });

  test.each(directories)("has made the directory %s, or may write to it: it is not used", async (at, says) => {
    const ways: readonly ((path: string) => void)[] = [
      (path) => chownSync(path, stranger, stranger),
      (path) => chmodSync(path, 0o777),
      (path) => chmodSync(path, 0o1777),
    ];
    const tried = ways.map(async (way) => {
      const [word, home] = await startAfter(({ directory }) => way(join(directory, at)));
      await using _ = home;
      expect(word).toMatch(says);
      expect(existsSync(home.socket)).toBe(false);
      expect(existsSync(join(home.dataDir, "leases.db"))).toBe(false);
      expect(existsSync(dirname(home.conflist)) && existsSync(home.conflist)).toBe(false);
    });
    await Promise.all(tried);
  });
});

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { createLogger } from "../../shared/log.ts";
import { authority, nodeKeys, nodePair } from "../../test/fakes/node-pairs.ts";
import { random } from "../../test/support/random.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { seed } from "../../test/support/seed.ts";
import { HeldCertificate, type HeldFiles } from "./held-certificate.ts";
import type { Pair } from "./pair-check.ts";
import { PairStore } from "./pair-store.ts";

let now = new Date();
/** Why strongSwan does not answer. */
let away: string | undefined;
/** How many had been told of when strongSwan read whom to trust. */
let rereadAt: number[] = [];
beforeEach(() => {
  now = new Date();
  away = undefined;
  rereadAt = [];
});

function opened(directory: string): { held: HeldCertificate; changes: HeldFiles[]; trust: string } {
  const trust = join(directory, "cacerts");
  const store = new PairStore(join(directory, "ipsec"));
  const logger = createLogger("error", () => undefined);
  const changes: HeldFiles[] = [];
  const reread = async (): Promise<string | undefined> => {
    rereadAt.push(changes.length);
    return away;
  };
  const held = new HeldCertificate({
    ...{ node: "node-a", store, trustDirectory: trust, reread, logger },
    now: () => now,
  });
  held.onChange = (files) => {
    if (files !== undefined) changes.push(files);
  };
  return { held, changes, trust };
}

/** As the loops of who gives a certificate do it. */
async function used(held: HeldCertificate, pair: Pair): Promise<string | undefined> {
  const wrong = held.use(pair);
  return (await held.settle()) ?? wrong;
}

const read = ({ certificate, privateKey, caCertificate }: HeldFiles): Pair => ({
  ...{ certificate: readFileSync(certificate, "utf8"), privateKey: readFileSync(privateKey, "utf8") },
  ca: readFileSync(caCertificate, "utf8"),
});

describe("a node's certificate", () => {
  test("is kept in files of root alone, and is there again after a restart", async () => {
    using directory = scratchDir();
    const pair = nodePair();
    const { held, changes } = opened(directory.path);
    expect([held.files, held.problem]).toEqual([undefined, "the node has no certificate for IPsec: none has come yet"]);
    expect(await used(held, pair)).toBeUndefined();
    const files = held.files as HeldFiles;
    expect([changes, held.problem, read(files)]).toEqual([[files], undefined, pair]);
    expect([files.privateKey, join(files.privateKey, "..")].map((path) => statSync(path).mode & 0o777)).toEqual([
      0o600, 0o700,
    ]);
    expect(opened(directory.path).held.files).toEqual(files);
    // The same once more changes nothing.
    await used(held, { ...pair });
    expect(changes).toHaveLength(1);
  });

  test("stays where another one is not in order, and says so", async () => {
    using directory = scratchDir();
    const { held, changes } = opened(directory.path);
    await used(held, nodePair());
    const { files } = held;
    expect(await used(held, { ...nodePair(), privateKey: nodeKeys[1] ?? "" })).toBe(
      "the private key is not the certificate's",
    );
    expect([held.files, changes.length]).toEqual([files, 1]);
    expect(held.problem).toMatch(/which ends at .*, stays: the private key is not/);
  });

  test("is none any more once it has ended, also after a restart", async () => {
    using directory = scratchDir();
    const { held } = opened(directory.path);
    await used(held, nodePair({ until: 1 }));
    now = new Date(Date.now() + 55 * 60_000);
    expect([held.files === undefined, held.problem]).toEqual([
      false,
      expect.stringMatching(/ends at .*, and no other/),
    ]);
    const heard: unknown[] = [];
    held.onChange = (files) => void heard.push(files);
    now = new Date(Date.now() + 2 * 60 * 60_000);
    await held.settle();
    await held.settle();
    expect(heard).toEqual([undefined]);
    expect([held.files, held.problem]).toEqual([
      undefined,
      expect.stringMatching(/has ended at .*: no other has come/),
    ]);
    const later = opened(directory.path).held;
    expect([later.files, later.problem]).toEqual([
      undefined,
      expect.stringMatching(/no certificate .*: .*has ended at/),
    ]);
    await used(held, nodePair({ until: 20 }));
    expect([held.problem, heard.at(-1)]).toEqual([undefined, held.files]);
  });

  test("is of another directory each time; what was before stays once, and no more", async () => {
    using directory = scratchDir();
    const { held, changes } = opened(directory.path);
    for (const until of [2, 3, 4]) await used(held, nodePair({ until }));
    const directories = readdirSync(join(directory.path, "ipsec")).filter((name) => name !== "current");
    expect(directories).toHaveLength(2);
    expect(changes.slice(1).map(read)).toEqual([expect.objectContaining({}), expect.objectContaining({})]);
    expect(new Set(changes.map(({ certificate }) => certificate)).size).toBe(3);
  });

  test("has strongSwan trust all of its authorities, one a file, and no others of ours", async () => {
    using directory = scratchDir();
    const [old, next] = [authority("old"), authority("next")];
    const { held, trust } = opened(directory.path);
    mkdirSync(trust);
    writeFileSync(join(trust, "theirs.pem"), "theirs");
    const trusted = (): string[] =>
      readdirSync(trust)
        .map((name) => readFileSync(join(trust, name), "utf8"))
        .sort();
    await used(held, nodePair({ ca: old }));
    expect(trusted()).toEqual([old.cert, "theirs"].sort());
    await used(held, { ...nodePair({ ca: old }), ca: `${next.cert}${old.cert}` });
    expect(trusted()).toEqual([next.cert, old.cert, "theirs"].sort());
    await used(held, nodePair({ ca: next }));
    expect(trusted()).toEqual([next.cert, "theirs"].sort());
    const first = readdirSync(trust).find((name) => name.startsWith("pipette-")) ?? "";
    writeFileSync(join(trust, first), "changed");
    await used(held, held.pair as Pair);
    expect(trusted()).toEqual([next.cert, "theirs"].sort());
  });

  test("is told once strongSwan was, or could not be, and that is tried again", async () => {
    using directory = scratchDir();
    const { held, changes } = opened(directory.path);
    const [old, next] = [authority("old"), authority("next")];
    await used(held, nodePair({ ca: old }));
    await used(held, nodePair({ ca: old, until: 30 }));
    // Of the same authority: strongSwan knows that one.
    expect([rereadAt, changes.length]).toEqual([[0], 2]);
    away = "strongSwan does not run";
    expect(await used(held, nodePair({ ca: next }))).toBe(away);
    expect([rereadAt, changes.length, held.problem]).toEqual([[0, 2], 3, expect.stringContaining(away)]);
    away = undefined;
    expect(await held.settle()).toBeUndefined();
    expect([await held.settle(), rereadAt, held.problem]).toEqual([undefined, [0, 2, 3], undefined]);
    // Whoever told it before may have been killed in between.
    expect(await opened(directory.path).held.settle()).toBeUndefined();
    expect(rereadAt).toEqual([0, 2, 3, 0]);
  });

  test("that cannot be written is not used", async () => {
    using directory = scratchDir();
    const { held, trust } = opened(directory.path);
    writeFileSync(trust, "a file in its place");
    expect(await used(held, nodePair())).toMatch(/Cannot write/);
    expect(held.files).toBeUndefined();
  });
});

test("whoever is killed at any moment leaves a whole pair: the one before or the one after", async () => {
  using directory = scratchDir();
  const at = join(directory.path, "ipsec");
  const pairs = [0, 1].map((index) => nodePair({ privateKey: nodeKeys[index] ?? "" }));
  const program = join(directory.path, "put.ts");
  writeFileSync(join(directory.path, "pairs.json"), JSON.stringify(pairs));
  writeFileSync(
    program,
    `import { PairStore } from ${JSON.stringify(join(import.meta.dirname, "pair-store.ts"))};
const pairs = await Bun.file(${JSON.stringify(join(directory.path, "pairs.json"))}).json();
const store = new PairStore(${JSON.stringify(at)});
for (let i = 0; i < 100_000; i++) {
  store.put(pairs[i % 2]);
  console.log(".");
}`,
  );
  const chance = random(seed);
  for (let round = 0; round < 25; round++) {
    const child = Bun.spawn([process.execPath, program], { stdout: "pipe", stderr: "inherit" });
    const reader = child.stdout.getReader();
    const wanted = 1 + chance(4);
    for (let dots = 0; dots < wanted; ) {
      const { value } = await reader.read();
      dots += new TextDecoder().decode(value).split(".").length - 1;
    }
    // In the midst of the next ones, as a rule.
    await Bun.sleep(chance(8));
    child.kill("SIGKILL");
    await child.exited;
    expect(pairs).toContainEqual(new PairStore(at).read());
  }
});

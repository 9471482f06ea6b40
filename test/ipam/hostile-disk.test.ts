import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, expect, test } from "vitest";
import { Allocator } from "../../ipam/mod.ts";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { type CniCall, callPlugin, runPlugin } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";
import { ipamCall, pipetteIpam } from "./ipam-call.ts";

/** The plugin in a mount namespace of its own, after `script` has done something to `dir`. */
const on = (dir: string, script: string): Partial<CniCall> => ({
  executable: pipetteIpam,
  prefix: ["unshare", "-m", "sh", "-ec", `${script}; exec "$@"`, "sh"],
  env: { DIR: dir },
});

const confIn = (dataDir: string) => ({
  cniVersion: "1.1.0",
  name: "pt-disk",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.79.0.0/24" }]] },
  "cni.dev/valid-attachments": [],
});

/** What lies in a directory, byte by byte; the index of the log is scratch that every look changes. */
const contentOf = (dir: string) =>
  readdirSync(dir)
    .filter((name) => !name.endsWith("-shm") && !statSync(`${dir}/${name}`).isDirectory())
    .map((name) => [name, readFileSync(`${dir}/${name}`).toString("latin1")]);

const block = 4096;
const frame = 2072;

/** Uses up the rest of the block that the log ends in: a full disk has room there. */
async function fillLastBlock(dir: string): Promise<void> {
  const rest = (): number => (block - (statSync(`${dir}/leases.db-wal`).size % block)) % block;
  using allocator = await Allocator.open(dir);
  for (let i = 0; i < 4 && rest() >= frame; i++) allocator.requireWritable();
  expect(rest()).toBeLessThan(frame);
}

const readOnly = `mount --bind "$DIR" "$DIR"; mount -o remount,ro,bind "$DIR"`;
const full = `cp -a "$DIR" /dev/shm/pt-kept; mount -t tmpfs -o size=128k none "$DIR"; cp -a /dev/shm/pt-kept/. "$DIR"; cat /dev/zero > "$DIR/rest" 2>&- || true`;

describeWith("a disk that will not do", ["root"], () => {
  beforeAll(compileExecutables);

  /** Calls that cannot work, each with its error; all of them leave everything as it is. */
  async function refuses(
    dir: string,
    verbs: readonly string[],
    wanted: RegExp,
    more: Partial<CniCall> = {},
  ): Promise<void> {
    const before = contentOf(dir);
    const calls = verbs.map(async (verb) => {
      const { status, stdout, stderr } = await runPlugin(ipamCall(verb, "c2", confIn(dir), more));
      expect(status, `${verb} ${stdout}${stderr}`).toBe(1);
      const { code, msg } = JSON.parse(stdout);
      expect([5, 11, 101]).toContain(code);
      // The database's, or in a directory that cannot be looked into the path of the first file asked for there.
      expect(msg).toContain(`"${dir}/`);
      expect(msg).toMatch(wanted);
    });
    await Promise.all(calls);
    expect(contentOf(dir)).toEqual(before);
  }

  async function worksAgain(dir: string): Promise<void> {
    const again = await callPlugin(ipamCall("ADD", "c1", confIn(dir)));
    expect(JSON.parse(again.stdout).ips).toEqual([{ address: "10.79.0.2/24", gateway: "10.79.0.1" }]);
    const next = await callPlugin(ipamCall("ADD", "c2", confIn(dir)));
    expect(JSON.parse(next.stdout).ips[0].address).toBe("10.79.0.3/24");
  }

  test("read-only: an error with the path, and nothing changes", async () => {
    using data = scratch();
    await callPlugin(ipamCall("ADD", "c1", confIn(data.path)));
    await refuses(data.path, ["ADD"], /(it is read-only|it cannot be opened)/, on(data.path, readOnly));
    await worksAgain(data.path);
  });

  test("full: an error with the path, and nothing changes", async () => {
    using data = scratch();
    await callPlugin(ipamCall("ADD", "c1", confIn(data.path)));
    await fillLastBlock(data.path);
    const there = on(data.path, `mount -t tmpfs none /dev/shm; ${full}`);
    await refuses(data.path, ["ADD"], /the disk is full/, there);
    await worksAgain(data.path);
  });

  test("full, and then not any more: the refused ADD has left nothing behind", async () => {
    using data = scratch();
    await callPlugin(ipamCall("ADD", "c1", confIn(data.path)));
    await fillLastBlock(data.path);
    const twice = 'cat > /dev/shm/conf; "$@" < /dev/shm/conf >&2 || rm "$DIR/rest"; exec "$@" < /dev/shm/conf';
    const there = on(data.path, `mount -t tmpfs none /dev/shm; ${full}; ${twice}`);
    const { stdout, stderr } = await callPlugin(ipamCall("ADD", "c2", confIn(data.path), there));
    expect(stderr).toContain("the disk is full");
    expect(JSON.parse(stdout).ips[0].address).toBe("10.79.0.3/24");
  });

  test("full, with no log to go on in: an error with the path, and nothing changes", async () => {
    using data = scratch();
    await callPlugin(ipamCall("ADD", "c1", confIn(data.path)));
    const mover = new DatabaseSync(`${data.path}/leases.db`);
    mover.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    mover.close();
    expect(readdirSync(data.path)).toEqual(["leases.db"]);
    const there = on(data.path, `mount -t tmpfs none /dev/shm; ${full}`);
    await refuses(data.path, ["ADD"], /(the disk is full|reading or writing it failed)/, there);
    await worksAgain(data.path);
  });

  test("that another user may not use: DEL does not take it for nothing to do", async () => {
    using data = scratch();
    await callPlugin(ipamCall("ADD", "c1", confIn(data.path)));
    // Root without the right to pass over permissions, in a directory that is another's.
    const may = "--bounding-set=-dac_override,-dac_read_search";
    for (const script of ['chown 65534 "$DIR"', 'chown 65534 "$DIR"/leases.db*']) {
      const there = on(data.path, `${script}; exec setpriv ${may} "$@"`);
      await refuses(
        data.path,
        ["ADD", "DEL"],
        /(cannot be (opened|made)|permission denied|belongs to user 65534)/i,
        there,
      );
      await callPlugin({
        ...ipamCall("VERSION", "", {}),
        prefix: ["sh", "-c", 'chown -R 0 "$0"; exec "$@"', data.path],
      });
    }
    await worksAgain(data.path);
  });

  test("read-only where nothing was ever leased: DEL succeeds, ADD names the directory", async () => {
    using data = scratch();
    const dir = `${data.path}/none`;
    const there = (verb: string) =>
      runPlugin(ipamCall(verb, "c1", confIn(`${dir}/deeper`), on(dir, `mkdir -p "$DIR"; ${readOnly}`)));
    expect((await there("DEL")).status).toBe(0);
    const { status, stdout } = await there("ADD");
    expect(status).toBe(1);
    expect(JSON.parse(stdout).msg).toContain(`Cannot create the lease database "${dir}/deeper/leases.db"`);
  });

  test("a file where the directory should be: DEL succeeds, ADD names it", async () => {
    using data = scratch();
    writeFileSync(`${data.path}/file`, "");
    const dir = `${data.path}/file/deeper`;
    expect((await runPlugin(ipamCall("DEL", "c1", confIn(dir)))).status).toBe(0);
    const { status, stdout } = await runPlugin(ipamCall("ADD", "c1", confIn(dir)));
    expect(status).toBe(1);
    expect(JSON.parse(stdout).msg).toContain(`"${dir}/leases.db"`);
  });

  test.each(["leases.db", "leases.db-wal", "leases.db-shm"])(
    "a symbolic link as %s: refused, and nothing is written there",
    async (name) => {
      using data = scratch();
      using elsewhere = scratch();
      const [dir, other] = [`${data.path}/data`, `${elsewhere.path}/data`];
      await callPlugin(ipamCall("ADD", "c1", confIn(other)));
      const mover = new DatabaseSync(`${other}/leases.db`);
      mover.exec("PRAGMA wal_checkpoint(TRUNCATE)");
      mover.close();
      const before = contentOf(other);
      for (const target of [`${other}/${name}`, `${elsewhere.path}/missing`]) {
        mkdirSync(dir);
        if (name !== "leases.db") writeFileSync(`${dir}/leases.db`, readFileSync(`${other}/leases.db`));
        symlinkSync(target, `${dir}/${name}`);
        const { status, stdout } = await runPlugin(ipamCall("ADD", "c2", confIn(dir)));
        expect(status, stdout).toBe(1);
        expect(JSON.parse(stdout).msg).toMatch(/(is a symbolic link|cannot be opened)/);
        expect(existsSync(`${elsewhere.path}/missing`)).toBe(false);
        rmSync(dir, { recursive: true });
      }
      expect(contentOf(other)).toEqual(before);
      expect(readdirSync(other)).toEqual(["leases.db"]);
    },
  );

  test("peers 16: a lock that another process keeps: an error with the bound, and nothing changes", {
    timeout: 60_000,
  }, async () => {
    using data = scratch();
    await callPlugin(ipamCall("ADD", "c1", confIn(data.path)));
    const holder = new DatabaseSync(`${data.path}/leases.db`);
    holder.exec("BEGIN EXCLUSIVE");
    const verbs = ["ADD", "DEL", "GC"];
    await refuses(data.path, verbs, /other processes held its lock for 5000 ms/);
    holder.exec("ROLLBACK");
    holder.close();
    await worksAgain(data.path);
  });
});

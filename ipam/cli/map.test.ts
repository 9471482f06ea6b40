import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseIp, plus } from "../../shared/net/ip.ts";
import { type IpamTerminal, ipamTerminal } from "../../test/fakes/ipam-terminal.ts";
import type { LeaseState } from "../lease.ts";

/** Ten usable addresses, a gateway inside, two excluded. */
const small = { ranges: [[{ subnet: "10.1.0.0/28", exclude: ["10.1.0.8/31"] }]] };

async function withPods(ipam: object = small): Promise<IpamTerminal> {
  const node = ipamTerminal(ipam);
  for (const id of ["s1", "s2", "s3"]) await node.allocate(id);
  await node.run("release", "--container", "s2");
  await node.change((store) => {
    const [lease] = store.select({ by: "address", network: "blue", ip: parseIp("10.1.0.4")! });
    if (lease !== undefined) store.put({ ...lease, state: "releasing", releasedAtMs: Date.now() });
  });
  return node;
}

/** As an allocator of many days leaves them. */
const fill = (node: IpamTerminal, first: string, count: number, state: LeaseState = "allocated"): Promise<void> =>
  node.change((store) => {
    const [sample] = store.select({ by: "network" });
    for (let i = 0; i < count && sample !== undefined; i++) {
      const ip = plus(parseIp(first)!, BigInt(i));
      const owner = { ...sample.owner, sandboxId: `many${i}` };
      const released = state === "allocated" ? {} : { releasedAtMs: Date.now() };
      store.put({ ...sample, owner, address: { ip, prefix: sample.address.prefix }, state, ...released });
    }
  });

describe("in the terminal", () => {
  test("every address has its sign, and the legend counts them", async () => {
    using node = await withPods();
    const { status, stdout } = await node.run("map", "--conf", node.conf);
    expect(status).toBe(0);
    expect(stdout).toBe(
      [
        "blue 10.1.0.1-10.1.0.14",
        "10.1.0.1  G#~%...xx.....",
        "# allocated 1  % releasing 1  ~ cooling 1  x excluded 2  G gateway 1  . free 8",
        "",
      ].join("\n"),
    );
  });

  test("without a configuration the store's own memory will do, which knows nothing of what is excluded", async () => {
    using node = await withPods();
    const { stdout } = await node.run("map");
    expect(stdout).toContain("10.1.0.1  G#~%..........\n");
    expect(stdout).not.toContain("excluded");
  });

  test.each([
    [{ LANG: "de_DE.UTF-8" }, [], "◆█▒▓···××·····"],
    [{ LC_ALL: "C", LANG: "de_DE.UTF-8" }, [], "G#~%...xx....."],
    [{ LANG: "C.utf8" }, ["--ascii"], "G#~%...xx....."],
  ])("with %j %j it draws %s", async (env, args, wanted) => {
    using node = await withPods();
    expect((await node.runWith({ env }, "map", "--conf", node.conf, ...args)).stdout).toContain(
      `10.1.0.1  ${wanted}\n`,
    );
  });

  test.each([
    [{ columns: 80 }, {}, true],
    [{}, {}, false],
    [{ columns: 80 }, { NO_COLOR: "1" }, false],
    [{ columns: 80 }, { TERM: "dumb" }, false],
  ])("with terminal %j and %j colours: %s", async (terminal, env, wanted) => {
    using node = await withPods();
    const { stdout } = await node.runWith({ ...terminal, env }, "map");
    expect(stdout.includes("\u001b[34m#\u001b[0m")).toBe(wanted);
    expect(stdout.includes("\u001b")).toBe(wanted);
  });

  test("rows begin at round addresses, as many as fit", async () => {
    using node = await withPods({ ranges: [[{ subnet: "10.1.0.0/24" }]] });
    const rows = (text: string): readonly string[] => text.split("\n").filter((line) => line.startsWith("10."));
    expect(rows((await node.run("map")).stdout).map((row) => [row.split(" ")[0], row.length])).toEqual([
      ["10.1.0.1", 76],
      ["10.1.0.64", 76],
      ["10.1.0.128", 76],
      ["10.1.0.192", 75],
    ]);
    const narrow = rows((await node.runWith({ columns: 40, env: { NO_COLOR: "1" } }, "map", "--ascii")).stdout);
    expect(narrow).toHaveLength(16);
    expect(narrow[1]).toBe(`10.1.0.16   ${".".repeat(16)}`);
  });

  test("a large pool is drawn as how much of each stretch is taken", async () => {
    using node = await withPods({ ranges: [[{ subnet: "10.1.0.0/18" }]] });
    await fill(node, "10.1.32.0", 512);
    await fill(node, "10.1.16.0", 3, "cooling");
    const { stdout } = await node.run("map");
    const rows = stdout.split("\n").filter((line) => line.startsWith("10."));
    // 16382 addresses in cells of 8: 32 rows of 64.
    expect(rows).toHaveLength(32);
    expect(stdout).toContain("One cell is 8 addresses\n");
    expect(rows.find((row) => row.startsWith("10.1.32.0 "))).toBe(`10.1.32.0  ${"8".repeat(64)}`);
    expect(rows.find((row) => row.startsWith("10.1.16.0 "))).toBe(`10.1.16.0  4${".".repeat(63)}`);
  });

  test("of an IPv6 network only the part that was touched is drawn", async () => {
    using node = await withPods({ ranges: [[{ subnet: "fd00:1::/64" }]] });
    const { stdout } = await node.run("map");
    expect(stdout).toContain("fd00:1::c0  ");
    expect(stdout).toContain("fd00:1::100-fd00:1::ffff:ffff:ffff:ffff is not drawn: no pod has an address there\n");
    expect(stdout).toContain(". free 18446744073709551611");
  });
});

describe("--json", () => {
  test("has the cells that are more than free, and exact numbers", async () => {
    using node = await withPods({ ranges: [[{ subnet: "fd00:1::/64" }]] });
    expect((await node.run("map", "--json")).stdout).toContain('"free": 18446744073709551611,');
    expect(await node.json("map")).toMatchObject({
      pools: [
        {
          network: "blue",
          from: "store",
          strips: [
            {
              addressesPerCell: 1,
              cells: [
                { first: "fd00:1::1", kind: "gateway" },
                { first: "fd00:1::2", kind: "allocated", counts: { allocated: 1 } },
                { first: "fd00:1::3", last: "fd00:1::3", kind: "cooling" },
                { first: "fd00:1::4", kind: "allocated" },
              ],
            },
          ],
        },
      ],
    });
  });
});

describe("--svg", () => {
  test("writes a picture that says what each cell is, for its owner alone", async () => {
    using node = await withPods();
    const file = `${node.path}/pool.svg`;
    expect(await node.run("map", "--conf", node.conf, "--svg", file)).toEqual({
      status: 0,
      stdout: "",
      stderr: `Wrote ${file}\n`,
    });
    const svg = readFileSync(file, "utf8");
    expect(lstatSync(file).mode & 0o777).toBe(0o600);
    expect(svg).toContain('role="img" aria-labelledby="title desc"');
    expect(svg).toContain("1 allocated, 1 releasing, 1 cooling, 2 excluded, 1 gateway, 8 free</desc>");
    expect(svg).toContain("prefers-color-scheme: dark");
    expect(svg).toContain("<title>10.1.0.2 allocated, pod default/s1, sandbox s1 (eth0)</title>");
    expect(svg.match(/<rect class="free" x/g)).toHaveLength(8 + 1); // With the legend's.
    expect(readdirSync(node.path).sort()).toEqual(["blue.conflist", "data", "pool.svg"]);
  });

  test("names that are markup stay text", async () => {
    using node = await withPods();
    await node.change((store) => {
      for (const lease of store.select({ by: "network" }))
        store.put({ ...lease, pod: { namespace: "<script>", name: '"&\u0001\u001b\ufffe', uid: "" } });
    });
    await node.run("map", "--svg", `${node.path}/pool.svg`);
    const svg = readFileSync(`${node.path}/pool.svg`, "utf8");
    expect(svg).toContain("pod &lt;script&gt;/&quot;&amp;\\u0001\\u001b\ufffd,");
    expect(svg).not.toMatch(/<script|\ufffe/);
    expect(svg).not.toMatch(/(?!\n)\p{Cc}/u);
  });

  test("replaces a file, and follows no link", async () => {
    using node = await withPods();
    const [file, link, target] = ["pool.svg", "link.svg", "target"].map((name) => `${node.path}/${name}`) as [
      string,
      string,
      string,
    ];
    writeFileSync(file, "old");
    expect((await node.run("map", "--svg", file)).status).toBe(0);
    expect(readFileSync(file, "utf8")).toMatch(/^<\?xml/);
    symlinkSync(target, link);
    expect(await node.run("map", "--svg", link)).toMatchObject({
      status: 1,
      stderr: `Cannot write "${link}": it is a symbolic link, wanted a file, or nothing\n`,
    });
    expect(existsSync(target)).toBe(false);
    mkdirSync(target);
    expect((await node.run("map", "--svg", target)).stderr).toContain("it is no file");
    expect((await node.run("map", "--svg", `${node.path}/none/pool.svg`)).stderr).toContain(
      "wanted a directory that can be written",
    );
  });
});

describe("stats", () => {
  test("counts each range set, exactly", async () => {
    using node = await withPods();
    const { pools, outsideRanges } = (await node.json("stats", "--conf", node.conf)) as {
      pools: object[];
      outsideRanges: number;
    };
    expect(pools).toEqual([
      {
        network: "blue",
        range: "10.1.0.1-10.1.0.14",
        from: "configuration",
        total: 11,
        allocated: 1,
        releasing: 1,
        cooling: 1,
        excluded: 2,
        gateways: 1,
        free: 8,
        usedPercent: 27.2,
        earlierBoot: 0,
        oldest: expect.objectContaining({ address: "10.1.0.2/28" }),
        churn: { allocations: 2 },
      },
    ]);
    expect(outsideRanges).toBe(0);
    const { stdout } = await node.run("stats");
    expect(stdout).toMatch(/^NETWORK +RANGE +TOTAL +ALLOCATED +RELEASING +COOLING +EXCLUDED +FREE +USED +OLDEST$/m);
    expect(stdout).toMatch(/^blue +10\.1\.0\.1-10\.1\.0\.14 +13 +1 +1 +1 +\? +10 +23 % +0s$/m);
  });

  test("agrees with the allocator's own count, also where a lease stands on an address that was excluded since", async () => {
    using node = await withPods();
    const section = { type: "pipette-ipam", dataDir: node.dataDir, ranges: small.ranges, exclude: ["10.1.0.2"] };
    writeFileSync(node.conf, JSON.stringify({ cniVersion: "1.0.0", name: "blue", type: "bridge", ipam: section }));
    const { pools } = (await node.json("stats", "--conf", node.conf)) as { pools: { total: number; free: number }[] };
    expect(pools).toMatchObject([{ total: 10, free: 8, allocated: 1, excluded: 2 }]);
  });

  test("tells what lies in no range, and what is of an earlier boot", async () => {
    using node = await withPods();
    await fill(node, "10.9.0.1", 3);
    await node.change((store) => {
      for (const lease of store.select({ by: "network" }))
        store.put({ ...lease, bootId: "another", allocatedAtMs: Date.now() - 36_000_000 });
    });
    const { stdout } = await node.run("stats", "--conf", node.conf);
    expect(stdout).toContain("3 more in no range shown here\n1 allocated before the last boot\n");
    expect(stdout).toContain("2 addresses (0.2 per hour) given since the oldest");
  });

  test("says all of it on one page", async () => {
    using node = await withPods();
    const hourAgo = Date.now() - 3_600_000;
    await node.change((store) => {
      store.setMark("generation", "11");
      for (const lease of store.select({ by: "network" })) store.put({ ...lease, allocatedAtMs: hourAgo });
    });
    expect(await node.run("stats", "--conf", node.conf)).toEqual({
      status: 0,
      stderr: "",
      stdout: [
        "NETWORK  RANGE               TOTAL  ALLOCATED  RELEASING  COOLING  EXCLUDED  FREE  USED    OLDEST",
        "blue     10.1.0.1-10.1.0.14  11     1          1          1        2         8     27.2 %  1h",
        "10 addresses (10 per hour) given since the oldest of these leases, by all range sets of the database",
        "",
      ].join("\n"),
    });
    // The count was lost.
    await node.change((store) => store.setMark("generation", "0"));
    expect(await node.json("stats")).toMatchObject({
      generation: 0,
      pools: [{ churn: { allocations: 0, perHour: 0 } }],
    });
    const gone = ["s1", "s2", "s3"];
    for (const id of gone) await node.run("release", "--container", id);
    const { stdout } = await node.run("stats");
    expect(stdout).toMatch(/ -\n$/);
  });

  test("counts an oldest lease for each range set, and shows who gave most since theirs", async () => {
    using node = ipamTerminal();
    for (const id of ["s1", "s2"]) await node.allocate(id);
    const { pools, generation } = (await node.json("stats")) as { generation: number; pools: readonly object[] };
    expect([generation, pools]).toEqual([
      4,
      [
        expect.objectContaining({ range: "10.1.0.1-10.1.0.254", oldest: expect.objectContaining({ generation: 1 }) }),
        expect.objectContaining({ churn: { allocations: 2 }, oldest: expect.objectContaining({ generation: 2 }) }),
      ],
    ]);
    expect((await node.run("stats")).stdout).toContain("\n3 addresses given since");
  });

  test("says so where nothing was given", async () => {
    using node = ipamTerminal();
    expect((await node.run("stats")).status).toBe(3);
    await node.change(() => undefined);
    expect(await node.run("stats")).toMatchObject({
      status: 0,
      stdout: expect.stringContaining("No addresses were given yet"),
    });
    expect((await node.run("map")).status).toBe(3);
    expect((await node.run("map", "--conf", node.conf)).status).toBe(0);
  });
});

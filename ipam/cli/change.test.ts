import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { ipamTerminal } from "../../test/fakes/ipam-terminal.ts";
import type { LeaseView } from "./lease-view.ts";

const statesIn = async (node: { json(...args: string[]): Promise<unknown> }): Promise<readonly string[]> =>
  ((await node.json("list")) as readonly LeaseView[]).map(
    (lease) => `${lease.address} ${lease.containerId} ${lease.state}`,
  );

describe("allocate", () => {
  test("gives what an ADD gives, and the same again", async () => {
    using node = ipamTerminal();
    const args = ["allocate", "--conf", node.conf, "--container", "s1", "--ip", "10.1.0.90", "--ip", "fd00:1::90"];
    const first = await node.json(...args);
    expect(first).toMatchObject({
      created: true,
      leases: [{ address: "10.1.0.90/24", ifname: "eth0" }, { address: "fd00:1::90/64" }],
      result: { cniVersion: "1.0.0", ips: [{ address: "10.1.0.90/24", gateway: "10.1.0.1" }, {}] },
    });
    expect(await node.json(...args)).toMatchObject({ created: false });
    expect((await node.run(...args)).stdout).toContain("It had them already\n");
  });

  test.each([
    [["--ip", "10.1.0.64"], 1, "excluded"],
    [["--ip", "10.9.0.1"], 1, "no range set left"],
    [["--ip", "10.1.0"], 2, '"--ip" is "10.1.0", wanted an IPv4 or IPv6 address'],
    [["--pod", "web"], 2, '"--pod" is "web", wanted NAMESPACE/NAME'],
    [["--container", "a b"], 2, '"--container" is "a b", wanted 1 to 128 characters'],
    [["--container", "s2"], 2, '"--container" is there twice'],
    [["--ifname", "a/b"], 2, '"--ifname" is "a/b", wanted 1 to 15 bytes'],
  ])("%j is refused", async (more, wantedStatus, wanted) => {
    using node = ipamTerminal();
    const { status, stdout, stderr } = await node.run("allocate", "--conf", node.conf, "--container", "s1", ...more);
    expect([status, stdout]).toEqual([wantedStatus, ""]);
    expect(stderr).toContain(wanted);
  });

  test.each([
    ['{"name": "blue"', 1, "Cannot read the network configuration"],
    ['{"name": "../x", "cniVersion": "1.0.0"}', 1, '"name" is "../x"'],
    [
      '{"name": "blue", "cniVersion": "1.0.0", "plugins": [{"type": "ptp", "ipam": {"type": "host-local"}}]}',
      1,
      '"plugins" is an array, wanted one whose',
    ],
    ["", 1, "it is empty"],
  ])("a configuration such as %j is refused, from standard input too", async (text, wantedStatus, wanted) => {
    using node = ipamTerminal();
    const { status, stderr } = await node.runWith({ stdin: text }, "allocate", "--conf", "-", "--container", "s1");
    expect([status, stderr]).toEqual([wantedStatus, expect.stringContaining(wanted)]);
    writeFileSync(node.conf, text);
    expect(await node.run("allocate", "--conf", node.conf, "--container", "s1")).toMatchObject({ status, stderr });
  });
});

describe("release", () => {
  test("by address wants --force while the owner may be alive, and then takes back all of the attachment", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.allocate("s2");
    const refused = await node.run("release", "10.1.0.2");
    expect(refused).toMatchObject({ status: 1, stdout: "" });
    expect(refused.stderr).toBe(
      'Cannot release addresses: "10.1.0.2" (generation 1) belongs to sandbox "s1" (eth0) of pod "default/s1", which may be alive, wanted --force\n',
    );
    expect(await statesIn(node)).not.toContain("10.1.0.2/24 s1 cooling");
    expect(await node.json("release", "10.1.0.2", "--force")).toMatchObject({
      released: [
        { address: "10.1.0.2/24", state: "cooling" },
        { address: "fd00:1::2/64", state: "cooling" },
      ],
    });
    expect(await statesIn(node)).toEqual([
      "10.1.0.2/24 s1 cooling",
      "10.1.0.3/24 s2 allocated",
      "fd00:1::2/64 s1 cooling",
      "fd00:1::3/64 s2 allocated",
    ]);
    expect(await node.json("release", "10.1.0.2")).toEqual({ released: [] });
  });

  test("says what it took back, also where that is one address, and where it is none", async () => {
    using node = ipamTerminal({ ranges: [[{ subnet: "10.1.0.0/24" }]] });
    await node.allocate("s1");
    const { stdout, ...ended } = await node.run("release", "--container", "s1");
    expect({ ...ended, lines: stdout.split("\n") }).toEqual({
      status: 0,
      stderr: "",
      lines: [
        "Released; cooling from now:",
        "ADDRESS   STATE    NETWORK  SANDBOX  INTERFACE  POD         AGE",
        expect.stringMatching(/^10\.1\.0\.2 {2}cooling {2}blue {5}s1 {7}eth0 {7}default\/s1 {2}\d+s$/),
        "",
      ],
    });
    const before = "was released before, nothing was changed\n";
    expect((await node.run("release", "--container", "s1")).stdout).toBe(`sandbox "s1" (eth0) ${before}`);
    expect((await node.run("release", "10.1.0.2")).stdout).toBe(`"10.1.0.2" ${before}`);
  });

  test.each([
    [["10.1.0.9"], '"10.1.0.9" has no lease'],
    [["--container", "s9"], 'sandbox "s9" (eth0) has no lease'],
    [["--container", "s1", "--ifname", "eth1"], 'sandbox "s1" (eth1) has no lease'],
  ])("%j names nothing", async (args, is) => {
    using node = ipamTerminal();
    await node.allocate("s1");
    expect(await node.run("release", ...args)).toEqual({
      status: 3,
      stdout: "",
      stderr: `Cannot release addresses: ${is}, wanted one attachment; --network NAME chooses\n`,
    });
  });

  test("by address leaves what the owner has got since alone", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.run("release", "--container", "s1");
    await node.allocate("s1", "--ip", "10.1.0.9");
    expect(await node.json("release", "10.1.0.2", "--force")).toEqual({ released: [] });
    expect(await statesIn(node)).toContain("10.1.0.9/24 s1 allocated");
  });

  test.each([
    ["no --force for a lease of an earlier boot", "another", 0],
    ["--force for one of an unknown boot", "", 1],
  ])("by address wants %s", async (_what, bootId, status) => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.change((store) => {
      for (const lease of store.select({ by: "network" })) store.put({ ...lease, bootId });
    });
    expect((await node.run("release", "10.1.0.2")).status).toBe(status);
  });

  test("ends releasing, but only with --force", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.change((store) => {
      for (const lease of store.select({ by: "network" })) store.put({ ...lease, state: "releasing", releasedAtMs: 1 });
    });
    expect(await node.run("release", "10.1.0.2")).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("waits for the agent to take its interface away, wanted --force"),
    });
    expect((await node.run("release", "10.1.0.2", "--force")).status).toBe(0);
    expect(await statesIn(node)).toEqual(["10.1.0.2/24 s1 cooling", "fd00:1::2/64 s1 cooling"]);
  });

  test("by container is a DEL by hand", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    expect((await node.run("release", "--container", "s1", "--ifname", "eth1")).status).toBe(3);
    expect(await node.json("release", "--container", "s1")).toMatchObject({ released: [{}, {}] });
  });

  test("asks for the network where several have what was named", async () => {
    using node = ipamTerminal();
    await node.allocate("s1");
    await node.change((store) => {
      const [lease] = store.select({ by: "network" });
      if (lease !== undefined) store.put({ ...lease, owner: { ...lease.owner, network: "red" } });
    });
    const several = await node.run("release", "--container", "s1");
    expect(several).toMatchObject({ status: 4, stdout: "" });
    expect(several.stderr).toContain("has leases in several networks");
    expect(await node.json("release", "--container", "s1", "--network", "red")).toMatchObject({
      released: [{ network: "red" }],
    });
  });

  test.each([
    [[], "nothing says which"],
    [["10.1.0.2", "--container", "s1"], "are both there"],
    [["web"], '"web" is no address'],
  ])("%j is refused", async (args, wanted) => {
    using node = ipamTerminal();
    await node.allocate("s1");
    expect(await node.run("release", ...args)).toMatchObject({ status: 2, stderr: expect.stringContaining(wanted) });
  });
});

describe("gc", () => {
  const keep = (...ids: string[]): string =>
    JSON.stringify(ids.map((containerID) => ({ containerID, ifname: "eth0" })));

  test("lists what would go, then takes just that back", async () => {
    using node = ipamTerminal();
    for (const id of ["s1", "s2", "s3"]) await node.allocate(id);
    await node.run("release", "--container", "s3");
    const args = ["gc", "--network", "blue", "--keep", "-"];
    const stdin = keep("s2");
    const before = await statesIn(node);
    const trial = await node.runWith({ stdin }, ...args, "--dry-run");
    expect(trial.stdout).toContain('Would take back 2 addresses of network "blue"; 1 attachment is kept\n');
    expect(trial.stdout).not.toMatch(/s2|s3/);
    expect(await statesIn(node)).toEqual(before);
    const { stdout } = await node.runWith({ stdin }, ...args, "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      dryRun: false,
      keep: 1,
      released: [{ containerId: "s1" }, { containerId: "s1" }],
    });
    expect((await statesIn(node)).filter((line) => line.endsWith("allocated"))).toEqual([
      "10.1.0.3/24 s2 allocated",
      "fd00:1::3/64 s2 allocated",
    ]);
  });

  test.each([
    ["[]", 0, "Took back 2 addresses"],
    ['{"cni.dev/valid-attachments": null}', 0, "Took back 2 addresses"],
    [`{"cni.dev/valid-attachments": ${keep("s1")}}`, 0, "Took back no addresses"],
    ["{}", 1, '"cni.dev/valid-attachments" is missing'],
    ['["s1"]', 1, '"cni.dev/valid-attachments[0]" is "s1"'],
    ["3", 1, "wanted one JSON object"],
    ["", 1, "wanted a JSON array or object"],
  ])("with %s to keep: status %i", async (stdin, wantedStatus, wanted) => {
    using node = ipamTerminal();
    await node.allocate("s1");
    const { status, stdout, stderr } = await node.runWith({ stdin }, "gc", "--network", "blue", "--keep", "-");
    expect([status, stdout + stderr]).toEqual([wantedStatus, expect.stringContaining(wanted)]);
    expect((await statesIn(node))[0]).toContain(wanted.startsWith("Took back 2") ? "cooling" : "allocated");
  });

  test("wants to be told the network and what to keep", async () => {
    using node = ipamTerminal();
    expect(await node.run("gc", "--network", "blue")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('"--keep" is missing'),
    });
    expect(await node.run("gc", "--keep", "x")).toMatchObject({
      status: 2,
      stderr: expect.stringContaining("wanted --network NAME or --conf FILE"),
    });
  });
});

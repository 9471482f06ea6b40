import { closeSync, openSync, rmSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { exportHostLocal } from "../../ipam/host-local/export.ts";
import { importHostLocal } from "../../ipam/host-local/import.ts";
import { Allocator } from "../../ipam/mod.ts";
import { openLibc } from "../../shared/server/libc.linux.ts";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, debianPlugins } from "../conformance/plugin.ts";
import { filesIn, hostLocalInScratch, leasesOf } from "../fakes/host-local-directory.ts";
import { ipamTerminal } from "../fakes/ipam-terminal.ts";
import { type CniCall, type CniEnded, callPlugin, runPlugin } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ipamCall } from "./ipam-call.ts";

const hostLocal = { executable: `${debianPlugins}/host-local` };

/** A node on which the one plugin and the other serve the network `net` from the same data directory. */
function nodeIn(dataDir: string) {
  const conf = {
    cniVersion: "1.0.0",
    name: "net",
    ipam: { dataDir, ranges: [[{ subnet: "10.81.0.0/24" }], [{ subnet: "fd81::/64" }]] },
  };
  const call = (verb: string, id: string, more: Partial<CniCall>): CniCall => ipamCall(verb, id, conf, more);
  const addresses = ({ stdout }: CniEnded): string =>
    (JSON.parse(stdout).ips as { address: string }[]).map(({ address }) => address.replace(/\/.*/, "")).join(" ");
  return {
    theirs: (verb: string, id: string, more: Partial<CniCall> = {}) =>
      callPlugin(call(verb, id, { ...hostLocal, ...more })),
    ours: (verb: string, id: string, more: Partial<CniCall> = {}) => callPlugin(call(verb, id, more)),
    tryOurs: (verb: string, id: string, more: Partial<CniCall> = {}) => runPlugin(call(verb, id, more)),
    tryTheirs: (verb: string, id: string) => runPlugin(call(verb, id, hostLocal)),
    addresses,
    async leases(): Promise<readonly string[]> {
      return (await leasesIn(dataDir)).map((lease) => `${lease.address} ${lease.containerId} ${lease.state}`);
    },
  };
}

describeWith("a network that the real host-local served until now", ["linux", "cni-plugins"], () => {
  beforeAll(compileExecutables);

  test("the first ADD takes its leases over, says so, and goes on where it was; the others say nothing", async () => {
    using data = scratchDir();
    const node = nodeIn(data.path);
    for (const id of ["a", "b", "c"]) await node.theirs("ADD", id);
    await node.theirs("DEL", "b");
    const before = filesIn(`${data.path}/net`);

    const first = await node.ours("ADD", "d");
    expect(node.addresses(first)).toBe("10.81.0.5 fd81::5");
    expect(first.stderr).toContain(`Leases of host-local in "${data.path}/net" for network "net": 4 taken over`);
    expect(await node.leases()).toEqual([
      "10.81.0.2/24 a allocated",
      "10.81.0.4/24 c allocated",
      "10.81.0.5/24 d allocated",
      "fd81::2/64 a allocated",
      "fd81::4/64 c allocated",
      "fd81::5/64 d allocated",
    ]);
    expect(filesIn(`${data.path}/net`)).toEqual(before);

    // As if it had always been ours.
    expect(node.addresses(await node.ours("ADD", "c"))).toBe("10.81.0.4 fd81::4");
    await node.ours("CHECK", "a");
    await node.ours("DEL", "a");
    expect((await node.leases()).filter((lease) => lease.includes(" a "))).toEqual([
      "10.81.0.2/24 a cooling",
      "fd81::2/64 a cooling",
    ]);
    // The directory is not looked at again, whatever becomes of it.
    rmSync(`${data.path}/net`, { recursive: true });
    const second = await node.ours("ADD", "e");
    expect(node.addresses(second)).toBe("10.81.0.6 fd81::6");
    expect(first.stderr).not.toBe("");
    expect(second.stderr).toBe("");
  });

  test.each(["DEL", "CHECK"])("%s before any ADD finds the lease too", async (verb) => {
    using data = scratchDir();
    const node = nodeIn(data.path);
    await node.theirs("ADD", "a");
    await node.ours(verb, "a");
    const state = verb === "DEL" ? "cooling" : "allocated";
    expect((await node.leases()).map((lease) => lease.split(" ")[2])).toEqual([state, state]);
    expect((await node.tryOurs("CHECK", "a")).status).toBe(verb === "DEL" ? 1 : 0);
  });

  test("64 first ADDs at once wait for whoever has host-local's lock, and one of them takes over", async () => {
    using data = scratchDir();
    const node = nodeIn(data.path);
    for (const id of ["a", "b"]) await node.theirs("ADD", id);
    const fd = openSync(`${data.path}/net/lock`, "r+");
    expect(openLibc().lockFile(fd)).toBe(true);
    const adding = Array.from({ length: 64 }, (_, i) => node.ours("ADD", `new${i}`));
    // A host-local that was there first: what it writes under the lock counts.
    await Bun.sleep(200);
    expect(await node.leases()).toEqual([]);
    const churn = ["c", "d"].map((id) => node.theirs("ADD", id));
    closeSync(fd);
    const added = await Promise.all(adding);
    await Promise.all(churn);
    const given = added.map(node.addresses);
    expect(new Set(given).size).toBe(64);
    for (const address of ["10.81.0.2", "10.81.0.3"])
      expect(given.some((pair) => pair.startsWith(`${address} `))).toBe(false);
    const reports = added.filter(({ stderr }) => stderr.includes("taken over"));
    expect(reports).toHaveLength(1);
    // Whatever host-local was doing, nothing was seen half done.
    expect(reports[0]?.stderr).not.toContain("unreadable");
    const leases = await node.leases();
    expect(leases.filter((lease) => lease.includes(" new"))).toHaveLength(128);
    for (const id of ["a", "b"]) expect(leases.filter((lease) => lease.includes(` ${id} `))).toHaveLength(2);
  });

  test("an ADD gives nothing while the directory cannot be taken over; a DEL is not kept from its end", async () => {
    using data = scratchDir();
    const node = nodeIn(data.path);
    await node.theirs("ADD", "a");
    rmSync(`${data.path}/net/lock`);
    const prefix = ["sh", "-c", `ln -sf /nowhere "${data.path}/net/lock"; exec "$@"`, "sh"];
    const { status, stdout } = await node.tryOurs("ADD", "b", { prefix });
    expect(status).toBe(1);
    expect(JSON.parse(stdout).msg).toContain(`Cannot lock host-local's directory: "${data.path}/net/lock"`);
    const del = await node.tryOurs("DEL", "b", { prefix });
    expect(del.status).toBe(0);
    expect(del.stderr).toContain("Cannot lock host-local's directory");
    expect(await node.leases()).toEqual([]);
  });
});

describeWith("a configuration without a data directory", ["linux", "root"], () => {
  beforeAll(compileExecutables);

  test("has host-local's leases at host-local's own default place", async () => {
    // A /var/lib of its own, that nothing of the machine is touched.
    const script = `mount -t tmpfs none /var/lib; mkdir -p /var/lib/cni/networks/net
      printf 'a\\r\\neth0' > /var/lib/cni/networks/net/10.81.0.2; exec "$@"`;
    const conf = { cniVersion: "1.0.0", name: "net", ipam: { subnet: "10.81.0.0/24" } };
    const prefix = ["unshare", "-m", "sh", "-ec", script, "sh"];
    const { stdout, stderr } = await callPlugin(ipamCall("ADD", "b", conf, { prefix }));
    expect(JSON.parse(stdout).ips).toEqual([{ address: "10.81.0.3/24", gateway: "10.81.0.1" }]);
    expect(stderr).toContain('Leases of host-local in "/var/lib/cni/networks/net" for network "net": 1 taken over');
  });
});

describeWith("the way back to the real host-local", ["linux", "cni-plugins"], () => {
  beforeAll(compileExecutables);

  test("it goes on where Pipette was, knows every container again, and what it does meanwhile is taken over", async () => {
    using data = scratchDir();
    const node = nodeIn(data.path);
    for (const id of ["a", "b"]) await node.theirs("ADD", id);
    for (const id of ["c", "d"]) await node.ours("ADD", id);
    await node.ours("DEL", "a");
    await node.ours("DEL", "d");
    {
      using allocator = await Allocator.open(data.path);
      const report = await exportHostLocal(allocator, { directory: `${data.path}/net`, network: "net" });
      expect(report).toMatchObject({ leases: 4, unreadable: [] });
    }
    const kept = { "10.81.0.3": "b\r\neth0", "10.81.0.4": "c\r\neth0", "fd81::3": "b\r\neth0", "fd81::4": "c\r\neth0" };
    const cursors = { "last_reserved_ip.0": "10.81.0.5", "last_reserved_ip.1": "fd81::5" };
    expect(filesIn(`${data.path}/net`)).toEqual({ ...kept, ...cursors, lock: "" });

    for (const id of ["b", "c"]) await node.theirs("CHECK", id);
    for (const id of ["a", "d"]) expect((await node.tryTheirs("CHECK", id)).status).toBe(1);
    expect(node.addresses(await node.theirs("ADD", "e"))).toBe("10.81.0.6 fd81::6");
    await node.theirs("DEL", "b");

    const back = await node.ours("ADD", "f");
    expect(back.stderr).toContain("2 taken over, 2 known already, 2 given up, which host-local has released");
    const pair = node.addresses(back).split(" ");
    expect((await node.leases()).filter((lease) => lease.endsWith("allocated")).sort()).toEqual(
      [
        ...["10.81.0.4/24 c", "fd81::4/64 c", "10.81.0.6/24 e", "fd81::6/64 e"],
        ...[`${pair[0]}/24 f`, `${pair[1]}/64 f`],
      ]
        .map((lease) => `${lease} allocated`)
        .sort(),
    );
  });

  test("an empty directory elsewhere will do as well", async () => {
    using here = scratchDir();
    using there = scratchDir();
    await nodeIn(here.path).ours("ADD", "a");
    using allocator = await Allocator.open(here.path);
    await exportHostLocal(allocator, { directory: `${there.path}/net`, network: "net" });
    const node = nodeIn(there.path);
    await node.theirs("CHECK", "a");
    expect(node.addresses(await node.theirs("ADD", "b"))).toBe("10.81.0.3 fd81::3");
    await node.theirs("DEL", "a");
    expect(Object.keys(filesIn(`${there.path}/net`)).filter((name) => name.endsWith("2"))).toEqual([]);
  });
});

describe("files of a Windows node", () => {
  test("come and go with their names", async () => {
    using there = hostLocalInScratch({
      "10.81.0.2": "a\r\neth0",
      fd81__2: "a\r\neth0",
      fd81_0_0_1_2_3_4_5: "legacy",
      "last_reserved_ip.0": "10.81.0.2",
      "last_reserved_ip.1": "fd81::2",
      lock: "",
    });
    using allocator = await there.open();
    await importHostLocal(allocator, { directory: there.directory, network: "net" });
    expect(leasesOf(allocator)).toEqual(["10.81.0.2 a eth0", "fd81::2 a eth0", "fd81::1:2:3:4:5 legacy any"]);
    const before = filesIn(there.directory);
    await exportHostLocal(allocator, { directory: there.directory, network: "net", windows: true });
    const canonical = { ...before, fd81__1_2_3_4_5: "legacy" } as Record<string, string>;
    delete canonical["fd81_0_0_1_2_3_4_5"];
    expect(filesIn(there.directory)).toEqual(canonical);
  });

  test("go from one node to another at the terminal", async () => {
    using here = ipamTerminal();
    using there = ipamTerminal();
    await here.allocate("a");
    const directory = `${here.path}/out`;
    expect(await here.json("export", "--network", "blue", "--to", directory, "--windows-names")).toMatchObject({
      leases: 2,
      written: 4,
    });
    expect(Object.keys(filesIn(directory))).toContain("fd00_1__2");
    expect(await there.json("import", "--conf", there.conf, "--from", directory)).toMatchObject({ taken: 2 });
    expect(await there.json("list")).toMatchObject([
      { address: "10.1.0.2/24", containerId: "a" },
      { address: "fd00:1::2/64", containerId: "a" },
    ]);
  });
});

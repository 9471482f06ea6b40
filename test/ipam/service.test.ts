import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { GrpcCode, type RpcError } from "../../ipam/service/ipam-client.ts";
import { DatagramSocket } from "../agent/datagram-socket.ts";
import { eventually } from "../support/agent-process.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { describeWith } from "../support/requires.ts";
import { attachmentOf, ServiceHome, serviceConf } from "./service-process.ts";

let home: ServiceHome;

beforeEach(() => {
  home = new ServiceHome();
});
afterEach(() => home[Symbol.asyncDispose]());

const mode = (path: string): number => statSync(path).mode & 0o777;

describeWith("pipette ipam serve", ["linux"], () => {
  test("peers 5.16: makes socket and data for its user alone, and tells systemd when it is ready and when it stops", async () => {
    using notify = new DatagramSocket(join(home.directory, "notify"));
    const service = await home.start([], { NOTIFY_SOCKET: join(home.directory, "notify") });
    // It says so to its log first.
    expect(await eventually(() => notify.receive(), "a datagram")).toBe("READY=1");
    const modes = [dirname(home.socket), home.socket, home.dataDir, join(home.dataDir, "leases.db")].map(mode);
    expect(modes).toEqual([0o750, 0o700, 0o700, 0o600]);
    expect(await home.client().serving()).toBe(true);
    expect(await service.end()).toBe(0);
    expect(notify.receive()).toBe("STOPPING=1");
    expect(service.lines.at(-1)).toMatchObject({ message: "stopped" });
    expect(service.lines.every((line) => typeof line["time"] === "string")).toBe(true);
    expect(existsSync(home.socket)).toBe(false);
  });

  test("is refused beside another one, with the other's pid, and takes the place of one that was killed", async () => {
    const first = await home.start();
    const client = home.client();
    const { leases } = await client.allocate({ ...attachmentOf("a"), configuration: serviceConf });
    const second = home.spawn();
    expect(await second.ended()).toBe(1);
    expect(second.stderr).toContain(
      `Cannot start the allocator's service: socket \\"${home.socket}\\" is held by process ${first.pid}`,
    );
    await first.end("SIGKILL");
    expect(lstatSync(home.socket).isSocket()).toBe(true);
    await expect(home.client().get(attachmentOf("a"))).rejects.toMatchObject({ unreachable: true });
    await expect(client.get(attachmentOf("a"))).rejects.toMatchObject({ grpcCode: GrpcCode.unavailable });
    await home.start();
    expect(await home.client().get(attachmentOf("a"))).toEqual(leases);
    // The same client finds the new one.
    const again = async (): Promise<unknown> => client.get(attachmentOf("a")).catch(() => Bun.sleep(50).then(again));
    expect(await again()).toEqual(leases);
  });

  test("leaves alone what is no stale socket of its own", async () => {
    mkdirSync(dirname(home.socket), { recursive: true });
    writeFileSync(home.socket, "mine");
    const first = home.spawn();
    expect(await first.ended()).toBe(1);
    expect(first.stderr).toContain("it is no socket, wanted a path of its own");
    expect(readFileSync(home.socket, "utf8")).toBe("mine");
    const other = join(home.directory, "other.sock");
    const stranger = createServer().listen(other);
    const second = home.spawn([], {}, other);
    expect(await second.ended()).toBe(1);
    expect(second.stderr).toContain("another program listens there, wanted a path of its own");
    expect(lstatSync(other).isSocket()).toBe(true);
    stranger.close();
  });

  test("SIGTERM in the middle of calls: what was begun is answered, the rest is refused, and the store agrees", async () => {
    const service = await home.start();
    const client = home.client();
    const watched = home.client();
    expect(await watched.serving()).toBe(true);
    const ids = Array.from({ length: 200 }, (_, i) => `t${i}`);
    const calls = ids.map((id) =>
      client.allocate({ ...attachmentOf(id), configuration: serviceConf }).then(
        () => id,
        (error: RpcError) => error.grpcCode,
      ),
    );
    await Promise.race(calls);
    service.signal("SIGTERM");
    const answers = await Promise.all(calls);
    expect(await service.ended()).toBe(0);
    const answered = answers.filter((answer) => typeof answer === "string");
    expect(answers.filter((answer) => typeof answer !== "string" && answer !== GrpcCode.unavailable)).toEqual([]);
    expect(brokenInvariants(join(home.dataDir, "leases.db"))).toEqual([]);
    await home.start();
    const held: string[] = [];
    for await (const lease of home.client().list()) held.push(lease.containerId);
    expect(held.sort()).toEqual(answered.sort());
  });

  test("serves the networks of the configurations that it is given, and no two ideas of where leases lie", async () => {
    const file = (name: string, conf: object): string => {
      const path = join(home.directory, name);
      writeFileSync(path, JSON.stringify(conf));
      return path;
    };
    const ipam = { ...serviceConf.ipam, dataDir: home.dataDir };
    const plugins = [{ type: "tuning" }, { type: "bridge", ipam }];
    const list = file("list.conflist", { cniVersion: "1.1.0", name: "listed", plugins });
    const plain = file("plain.conf", { ...serviceConf, type: "bridge", ipam });
    const service = await home.start(["--conf", list, "--conf", plain]);
    expect(service.lines[0]).toMatchObject({ message: "ready", networks: ["listed", "net"] });
    const configuration = { cniVersion: "1.1.0", name: "listed" };
    const { leases } = await home.client().allocate({ containerId: "a", ifname: "eth0", configuration });
    expect(leases).toMatchObject([{ network: "listed", address: "10.88.0.2/16" }]);
    await service.end();

    const elsewhere = file("elsewhere.conf", { ...serviceConf, ipam: { ...ipam, dataDir: "/var/lib/elsewhere" } });
    const nothing = file("nothing.conf", { ...serviceConf, ipam: { dataDir: home.dataDir } });
    for (const [args, wanted] of [
      [["--conf", plain, "--conf", plain], "two configurations have this name, wanted one"],
      [["--conf", elsewhere], `its "ipam.dataDir" is "/var/lib/elsewhere", wanted "${home.dataDir}"`],
      [["--conf", nothing], "it names no addresses"],
      [["--conf", join(home.directory, "none")], "wanted a readable file"],
    ] as const) {
      const refused = home.spawn(args);
      expect([await refused.ended(), refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain(wanted);
      expect(existsSync(home.socket)).toBe(false);
    }
  });
});

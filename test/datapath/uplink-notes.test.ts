import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LinuxHost } from "../../agent/datapath/ovs/linux/linux-host.ts";
import { Kernel } from "../../agent/protocols/netlink/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";

describeWith("the node's addresses on a bridge", ["root"], () => {
  let open: AsyncDisposableStack;
  let sandbox: NetworkSandbox;
  let dataDir: string;
  let host: LinuxHost;
  const log: string[] = [];

  beforeEach(async () => {
    open = new AsyncDisposableStack();
    sandbox = open.use(await NetworkSandbox.enter("pt-un-"));
    await sandbox.node("ip link add nic0 type veth peer name wire0");
    await sandbox.node("ip link add br0 type bridge");
    await sandbox.node("ip addr add 192.0.2.7/24 dev nic0");
    await sandbox.node("ip link set nic0 up");
    await sandbox.node("ip route add default via 192.0.2.1 dev nic0");
    dataDir = join(open.use(scratchDir()).path, "data");
    const socket = open.use(open.use(new Kernel()).openSocket());
    const logger = createLogger("info", (line) => void log.push(line));
    log.length = 0;
    host = new LinuxHost(socket, "gw0", dataDir, logger);
  });
  afterEach(() => open.disposeAsync());

  test("are moved there also where no disk takes a note of them, which is said, and made up for", async () => {
    writeFileSync(dataDir, "");
    await host.keepAddresses("nic0", "br0");
    expect(await sandbox.node("ip -o addr show dev br0")).toContain("192.0.2.7/24");
    expect(await sandbox.node("ip route")).toContain("default via 192.0.2.1 dev br0");
    expect(log).toEqual([expect.stringContaining("not noted")]);
    rmSync(dataDir);
    mkdirSync(dataDir);
    await host.keepAddresses("nic0", "br0");
    expect(readFileSync(join(dataDir, "uplink.json"), "utf8")).toContain("192.0.2.7/24");
    await sandbox.node("ip link del br0");
    await sandbox.node("ip link add br0 type bridge");
    await host.keepAddresses("nic0", "br0");
    expect(await sandbox.node("ip route")).toContain("default via 192.0.2.1 dev br0");
  });

  test("come back by a note in which a later release has noted more", async () => {
    mkdirSync(dataDir);
    await host.keepAddresses("nic0", "br0");
    const path = join(dataDir, "uplink.json");
    writeFileSync(path, JSON.stringify({ ...JSON.parse(readFileSync(path, "utf8")), later: [1] }));
    await sandbox.node("ip link del br0");
    await sandbox.node("ip link add br0 type bridge");
    await host.keepAddresses("nic0", "br0");
    expect(await sandbox.node("ip -o addr show dev br0")).toContain("192.0.2.7/24");
  });
});

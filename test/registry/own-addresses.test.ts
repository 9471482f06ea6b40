import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { joinCluster } from "../../agent/cluster/join.ts";
import { StaticRegistry } from "../../agent/cluster/static/static-registry.ts";
import { findOwnAddresses } from "../../agent/cluster/this-node.ts";
import { parseAgentConfig } from "../../agent/config/parse-agent-config.ts";
import { createLogger } from "../../shared/log.ts";
import { formatCidr, formatIp, parseIp } from "../../shared/net/ip.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";

describeWith("a node's own addresses", ["root"], () => {
  let sandbox: NetworkSandbox;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-ra-");
    for (const [name, mac] of [
      ["up0", "52:54:00:00:00:01"],
      ["up1", "52:54:00:00:00:02"],
    ])
      await sandbox.node(`ip link add ${name} address ${mac} type veth peer name ${name}p`);
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());

  const found = async (...wanted: string[]) => {
    const { addresses, linkAddresses, mac } = await findOwnAddresses(wanted.map((text) => parseIp(text)!));
    return [addresses.map(formatIp).join(), linkAddresses.map(formatCidr).join(), mac];
  };

  test("are those of the interface that the default route leads out by", async () => {
    await expect(found()).rejects.toMatchObject({
      code: 11,
      message: expect.stringContaining("there is no default route"),
    });
    await sandbox.node("ip address add 198.51.100.7/24 dev up1");
    await sandbox.node("ip address add 192.0.2.7/25 dev up0");
    await sandbox.node("ip address add fd00::7/64 dev up0 nodad");
    for (const name of ["up0", "up0p", "up1", "up1p"]) await sandbox.node(`ip link set ${name} up`);
    await sandbox.node("ip route add default via 198.51.100.1 dev up1 metric 200");
    expect(await found()).toEqual(["198.51.100.7", "198.51.100.7/24", "52:54:00:00:00:02"]);
    await sandbox.node("ip route add default via 192.0.2.1 dev up0 metric 100");
    expect(await found()).toEqual(["192.0.2.7,fd00::7", "192.0.2.7/25,fd00::7/64", "52:54:00:00:00:01"]);
  });

  test("those that are configured are looked up, and need no interface", async () => {
    expect(await found("198.51.100.7")).toEqual(["198.51.100.7", "198.51.100.7/24", "52:54:00:00:00:02"]);
    expect(await found("203.0.113.1")).toEqual(["203.0.113.1", "", undefined]);
  });

  test("are where the registry's record has them, whatever the default route says", async () => {
    using scratch = scratchDir();
    const file = join(scratch.path, "nodes.json");
    const node = { name: "here", addresses: ["198.51.100.7"], subnets: ["10.79.0.0/24"] };
    writeFileSync(file, JSON.stringify({ nodes: [node] }));
    const network = "networks: [{ name: pods, bridge: b }]";
    const text = `dataDir: ${scratch.path}\n${network}\nnodes: { name: here, registry: { type: static, file: ${file} } }\n`;
    const parsed = parseAgentConfig(text, "agent.yaml");
    if (parsed.t !== "ok" || parsed.config.nodes === undefined) throw new Error("no configuration");
    const { config } = parsed;
    const logger = createLogger("error", () => undefined);
    const { membership } = await joinCluster({
      config,
      nodes: parsed.config.nodes,
      registry: new StaticRegistry({ file, logger }),
      podsStand: () => false,
      podSubnets: () => [],
      logger,
      signal: new AbortController().signal,
      waiting: (reason) => expect.fail(reason),
    });
    await using _ = membership;
    expect(membership.linkAddresses.map(formatCidr)).toEqual(["198.51.100.7/24"]);
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { gatewayMac } from "../../agent/datapath/linux/names.ts";
import { createOvsDataPath } from "../../agent/datapath/ovs/linux/mod.ts";
import { LiveValue } from "../../shared/async/live-value.ts";
import { formatMac } from "../../shared/net/mac.ts";
import { cidr, loggerInto } from "../datapath/bridge-fixture.ts";
import { netpolCases } from "../policies/netpol/cases.ts";
import { nine } from "../policies/netpol/netpol-case.ts";
import { NetpolPods } from "../policies/netpol/on-pods.ts";
import type { PolicedNode } from "../policies/probed-pods.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { OpenVswitch } from "./open-vswitch.ts";

const subnets = [cidr("10.77.0.0/24"), cidr("fd77::/64")];

/** Services are translated by the node's kernel, as with kube-proxy: packets come back by the gateway's port. */
describeWith("the suite of network policies on Open vSwitch", ["root", "openvswitch", "nft"], () => {
  const stack = new AsyncDisposableStack();
  const lines: string[] = [];
  let pods: NetpolPods;

  beforeAll(async () => {
    const sandbox = stack.use(await NetworkSandbox.enter("pt-npo-"));
    const vswitch = stack.use(await OpenVswitch.start());
    for (const command of ["link add up0 type bridge", "addr add 172.30.0.1/24 dev up0", "link set up0 up"])
      await sandbox.node(`ip ${command}`);
    const dataPath = stack.use(
      createOvsDataPath({
        database: `unix:${vswitch.socket}`,
        management: `unix:${vswitch.management("br-int")}`,
        bridge: "br-int",
        kind: "netdev",
        mode: "encap",
        tunnel: { name: "pipette-tun0", type: "geneve", checksum: false },
        encryption: "none",
        ipsec: { esp: "kernel", forceUdp: false, charon: "" },
        wireguard: { port: 51_820, device: "wg0" },
        gateway: "pipette-gw0",
        nodeName: "n1",
        podSubnets: subnets,
        peers: new LiveValue(new Map()),
        services: undefined,
        serviceCidrs: [cidr("10.96.0.0/16"), cidr("fd96::/112")],
        tenants: undefined,
        logger: loggerInto(lines),
        network: "pods",
        dataDir: stack.use(scratchDir()).path,
        nodeAddresses: [cidr("172.30.0.1/24")],
        masquerade: false,
        podOf: () => undefined,
        clusterSubnets: undefined,
      }),
    );
    await dataPath.start();
    const mac = formatMac(gatewayMac("br-int", subnets));
    const node: PolicedNode = { name: "n1", dataPath, within: (work) => work(), subnets, mac };
    pods = stack.use(
      await NetpolPods.attach(sandbox, [node], {
        nodeOf: () => "n1",
        ipsOf: (pod) => [`10.77.0.${10 + nine.indexOf(pod)}`, `fd77::${10 + nine.indexOf(pod)}`],
      }),
    );
  });
  afterAll(() => stack.disposeAsync());

  test.each(netpolCases)("$name", async (each) => {
    for (const [family, by] of [
      [4, "service"],
      [6, "pod"],
    ] as const)
      expect(await pods.run(each, family, by), `IPv${family} by ${by}`).toEqual([]);
  });
});

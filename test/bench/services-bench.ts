import { OpenVswitch } from "../overlay/open-vswitch.ts";
import { runBudgets } from "./bench-program.ts";
import { measureBridgeServices } from "./measures/bridge-services.ts";
import { measureFirstPacket } from "./overlay/measure-first-packet.ts";
import { measureServices } from "./overlay/measure-services.ts";

const usage = `Usage: npm run bench:services [-- --quick] [-- --json FILE]

Measures 10,000 services with 10 endpoints each on an Open vSwitch of this run's own: into an empty switch, the change
of one endpoint, the agent's memory, and new connections by one of them. What the switch takes is held against
ovs-ofctl, connections against the pod's own address. Then the same on a kernel bridge, where one endpoint's change is
held against nft, which kube-proxy runs for each of its changes; kube-proxy itself is measured by bench:kube-proxy. Exit
status 1 where a budget is broken.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

const services = { count: 10_000, endpoints: 10 } as const;

process.exitCode = await runBudgets(usage, async ({ quick, ...run }) => {
  const setting = { ...run, rounds: quick ? 2 : 10, services };
  await using vswitch = await OpenVswitch.start();
  return [
    ...(await measureServices(vswitch, setting)),
    await measureFirstPacket(setting),
    ...(await measureBridgeServices(setting)),
  ];
});

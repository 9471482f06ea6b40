import { OpenVswitch } from "../overlay/open-vswitch.ts";
import { runBudgets } from "./bench-program.ts";
import { measureFirstPacket } from "./overlay/measure-first-packet.ts";
import { measureServices } from "./overlay/measure-services.ts";

const usage = `Usage: npm run bench:services [-- --quick] [-- --json FILE]

Measures 10,000 services with 10 endpoints each on an Open vSwitch of this run's own: into an empty switch, the change
of one endpoint, the agent's memory, and new connections by one of them. What the switch takes is held against
ovs-ofctl, connections against the pod's own address. kube-proxy is not measured here. Exit status 1 where a budget is
broken.

  --quick       few rounds: the figures are rough
  --json FILE   appends one JSON line per measure, with date, machine and versions
`;

const services = { count: 10_000, endpoints: 10 } as const;

process.exitCode = await runBudgets(usage, async ({ quick, ...run }) => {
  const setting = { ...run, rounds: quick ? 2 : 10, services };
  await using vswitch = await OpenVswitch.start();
  return [...(await measureServices(vswitch, setting)), await measureFirstPacket(setting)];
});

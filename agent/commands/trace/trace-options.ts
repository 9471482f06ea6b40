import { acrossOptions, outputOption, wayOptions } from "../../../operator/mod.ts";
import { parseIp } from "../../../shared/net/ip.ts";
import { paths } from "../../../shared/os/paths.ts";
import type { OptionSpec } from "../../../shared/terminal/command.ts";

const portRule = {
  wrong: (text: string) =>
    /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535 ? undefined : `"${text}"`,
  wanted: "a port from 1 to 65535",
};
const addressRule = {
  wrong: (text: string) => (parseIp(text) === undefined ? `"${text}"` : undefined),
  wanted: "an address",
};
const macRule = {
  wrong: (text: string) => (/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(text) ? undefined : `"${text}"`),
  wanted: "a MAC address such as 0a:00:0a:0a:01:02",
};
const keyRule = {
  wrong: (text: string) => (/^\d{1,8}$/.test(text) && Number(text) < 2 ** 24 ? undefined : `"${text}"`),
  wanted: "a number below 2^24",
};

const { bundle: _, ...liveWays } = wayOptions;

/** What `pipette trace` takes: of packets, of the switch of this node, and of the way to agents. */
export const traceOptions = {
  simulate: { help: "asks the switch of this node what it would do, and sends nothing, which is the default" },
  ...acrossOptions,
  protocol: { value: "NAME", of: ["icmp", "tcp", "udp"], help: "of the packet (default icmp, and tcp with --port)" },
  port: { value: "PORT", rule: portRule, help: "of the destination" },
  tcp: { value: "PORT", rule: portRule, help: "a TCP connection to this port" },
  udp: { value: "PORT", rule: portRule, help: "UDP to this port" },
  icmp: { help: "an echo request, which is the default" },
  reply: { help: "what the second pod answers, in a connection that stands" },
  "from-tunnel": {
    value: "NODE",
    rule: addressRule,
    help: "how a packet goes on that came through the tunnel from the node of this address; its sender is told by address",
  },
  "tunnel-key": { value: "VNID", rule: keyRule, help: "with which key it came through the tunnel (default 0)" },
  "as-ip": { value: "ADDRESS", rule: addressRule, help: "as if the sender took this address for its own" },
  "as-mac": { value: "MAC", rule: macRule, help: "as if the sender took this MAC address for its own" },
  ...outputOption,
  json: { help: "the same as -o json" },
  raw: { help: "what Open vSwitch itself says of it" },
  control: {
    value: "PATH",
    of: "file",
    help: "where ovs-vswitchd takes commands (default ovs-vswitchd.PID.ctl beside its database)",
  },
  config: { value: "FILE", of: "file", help: `the agent's configuration (default ${paths.agentConfig})` },
  ...liveWays,
} as const satisfies Readonly<Record<string, OptionSpec>>;

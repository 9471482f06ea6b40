import { readFileSync } from "node:fs";
import type { SwitchPort } from "../../agent/commands/trace/switch-ports.ts";
import type { Control } from "../../agent/protocols/switch-control/mod.ts";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";

/** For tests: what Open vSwitch 3.1 printed for packets of a small pipeline, by the names of the files. */
export const recordings = ["same-node", "spoofed", "other-node", "service", "from-tunnel"] as const;

export const recorded = (name: (typeof recordings)[number] | "other-node-rest"): string =>
  readFileSync(new URL(`recorded/${name}.txt`, import.meta.url), "utf8");

/** A switch that answers what is given, in turn. */
export function answering(...answers: readonly string[]): Control & { readonly asked: (readonly string[])[] } {
  const asked: (readonly string[])[] = [];
  return {
    asked,
    ask: async (command, args) => {
      asked.push([command, ...args]);
      return answers[asked.length - 1] ?? "";
    },
    [Symbol.dispose]: () => undefined,
  };
}

/** Of a text that is known to be an address. */
export function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`Broken invariant: "${text}" is no address`);
  return parsed;
}

/** The ports of the recorded switch. */
export const recordedPorts: readonly SwitchPort[] = [
  { name: "tun0", ofport: 1, kind: "tunnel", mac: "" },
  { name: "gw0", ofport: 2, kind: "gateway", mac: "0e:00:00:00:00:01" },
  {
    name: "p1",
    ofport: 11,
    kind: "pod",
    mac: "0a:00:00:00:00:02",
    pod: { name: "default/web", ips: [ip("10.10.1.2")] },
  },
  { name: "p2", ofport: 12, kind: "pod", mac: "0a:00:00:00:00:03", pod: { name: "shop/db", ips: [ip("10.10.1.3")] } },
  {
    name: "p3",
    ofport: 13,
    kind: "pod",
    mac: "0a:00:00:00:00:04",
    pod: { name: "shop/web", ips: [ip("10.10.1.4"), ip("fd00::4")] },
  },
];

export const portNamed = (text: string): SwitchPort => {
  const found = recordedPorts.find(({ name, pod }) => name === text || pod?.ips.some((own) => formatIp(own) === text));
  if (found === undefined) throw new Error(`Broken invariant: there is no port "${text}"`);
  return found;
};

import type { NetworkNamespace } from "../../support/network-namespace.ts";

/** Somewhere that packets come from or go to. */
export interface Place {
  readonly name: string;
  readonly namespace: NetworkNamespace;
  readonly addresses: readonly string[];
  /** Its possible addresses in the eyes of whom it calls at `address`; absent: all of its own. */
  readonly seenAs?: (address: string) => readonly string[];
}

export interface Ping {
  /** Bytes of the whole IP packet, which must not be cut into fragments. */
  readonly packetBytes?: number;
  /** Address that it comes from. */
  readonly from?: string;
  /** How long an answer is waited for. */
  readonly seconds?: number;
}

/** Bytes of the headers of IP and ICMP. */
const headerBytes = (address: string): number => (address.includes(":") ? 40 : 20) + 8;

const words = (address: string, { packetBytes, from, seconds = 2 }: Ping): string[] => [
  ...["ping", "-n", "-q", "-c", "1", "-W", String(seconds)],
  ...(packetBytes === undefined ? [] : ["-M", "do", "-s", String(packetBytes - headerBytes(address))]),
  ...(from === undefined ? [] : ["-I", from]),
  address,
];

/** Whether one ping, the first, is answered. */
export async function answers(namespace: NetworkNamespace, address: string, ping: Ping = {}): Promise<boolean> {
  return (await namespace.start(words(address, ping)).ended).status === 0;
}

/** How many pings have got there, answered or not: who lies about its address would hear no answer in any case. */
export async function pingsHeard(namespace: NetworkNamespace): Promise<number> {
  const [v4, v6] = await Promise.all(["snmp", "snmp6"].map((file) => namespace.run(`cat /proc/net/${file}`)));
  const [names = [], values = []] = (v4 ?? "").split("\n").flatMap((line) => {
    const words = line.split(" ");
    return words[0] === "Icmp:" ? [words] : [];
  });
  const heard6 = /^Icmp6InEchos\s+(\d+)$/m.exec(v6 ?? "")?.[1];
  return Number(values[names.indexOf("InEchos")]) + Number(heard6);
}

/**
 * Sends one ping from every place to every address of every other.
 * @returns a line for each that was not answered
 */
export async function unansweredPings(places: readonly Place[], targets: readonly Place[] = places): Promise<string[]> {
  const lines: string[] = [];
  for (const from of places) {
    const others = targets.filter((to) => to !== from);
    const pings = others.flatMap((to) =>
      to.addresses.map(async (address) => {
        if (!(await answers(from.namespace, address))) lines.push(`${from.name} -> ${to.name} (${address})`);
      }),
    );
    await Promise.all(pings);
  }
  return lines.sort();
}

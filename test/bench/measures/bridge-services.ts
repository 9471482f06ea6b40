import type { ServicePort } from "../../../agent/datapath/services.ts";
import { formatIp, ipOf } from "../../../shared/net/ip.ts";
import { addresses, endpoint, ServicedNode, service, tableName } from "../../datapath/serviced-node.ts";
import { endpointAt } from "../../fakes/service-port.ts";
import { call } from "../../overlay/named-server.ts";
import { NetworkSandbox } from "../../support/network-sandbox.ts";
import { manyServices, type ServicesSize } from "../overlay/measure-services.ts";
import { compare, type Row } from "../row.ts";
import { summarize } from "../stats.ts";

/** In each round, of which the sum is told: one alone is too short for the clock of a busy machine. */
const connections = 50;
const vip = "10.97.0.1";
/** Where the agent could have done something else meanwhile. */
const tickMs = 5;

interface Setting {
  readonly services: ServicesSize;
  readonly rounds: number;
  readonly progress: (text: string) => void;
}

/**
 * Services on a kernel bridge, by the data path in this process: into an empty table, by an agent that begins anew and
 * finds them there, one endpoint's change against one run of `nft` (as kube-proxy makes for each of its changes), and
 * new connections by one of them against the pod's own address.
 */
export async function measureBridgeServices({ services: size, rounds, progress }: Setting): Promise<Row[]> {
  const text = `${size.count} services with ${size.endpoints} endpoints each on a kernel bridge`;
  progress(text);
  await using sandbox = await NetworkSandbox.enter("pt-bs-");
  await using node = await ServicedNode.start(sandbox);
  const all = [service(vip, [endpoint(addresses.b[4])]), ...manyServices(size)];
  const anew: number[] = [];
  const adopting: number[] = [];
  let longestTurnMs = 0;
  const timed = async (services: readonly ServicePort[]): Promise<number> => {
    const began = performance.now();
    let last = began;
    const ticks = setInterval(() => {
      longestTurnMs = Math.max(longestTurnMs, performance.now() - last);
      last = performance.now();
    }, tickMs);
    const refused = await node.apply(...services);
    clearInterval(ticks);
    const now = performance.now();
    longestTurnMs = Math.max(longestTurnMs, now - last);
    if (refused.length > 0) throw new Error(refused.join());
    return now - began;
  };
  for (let round = 0; round < Math.min(rounds, 3); round++) {
    await timed([]);
    anew.push(await timed(all));
    await node.restart();
    adopting.push(await timed(all));
  }
  const row = (what: string, value: number): Row => ({ measure: `${text}, ${what}`, unit: "ms", value });
  return [
    row("into an empty table", summarize(anew).median),
    row("by an agent that finds them", summarize(adopting).median),
    row("longest turn of the event loop", longestTurnMs),
    await measureOne(text, rounds, all, { timed, sandbox }),
    await measureConnections(text, rounds, node),
  ];
}

interface Means {
  timed(services: readonly ServicePort[]): Promise<number>;
  readonly sandbox: NetworkSandbox;
}

function measureOne(
  text: string,
  rounds: number,
  [own, first, ...others]: readonly ServicePort[],
  { timed, sandbox }: Means,
): Promise<Row> {
  if (own === undefined || first === undefined) throw new Error("There is no service to change");
  const { clusterIp, internal } = first;
  const other = (round: number) => endpointAt(ipOf(4, 0x0a70_0000n + BigInt(round)), 80);
  return compare({
    measure: `${text}, one endpoint changes`,
    rounds,
    ours: (round) => {
      const endpoints = [...internal.slice(1), other(round)];
      return timed([own, { ...first, internal: endpoints, cluster: endpoints, external: endpoints }, ...others]);
    },
    peer: async (round) => {
      // Of nobody's service, in the same map.
      const key = `${formatIp(clusterIp)} . tcp . 9 . 0x00000000`;
      const element = (at: number): string => `endpoints4 { ${key} : ${formatIp(other(at).ip)} . 80 }`;
      const gone = round === 0 ? "" : `delete element inet ${tableName} ${element(round - 1)}\n`;
      const began = performance.now();
      await sandbox.nodeWith("nft -f -", `${gone}add element inet ${tableName} ${element(round)}\n`);
      return performance.now() - began;
    },
    peerName: "nft",
  });
}

function measureConnections(text: string, rounds: number, node: ServicedNode): Promise<Row> {
  const timed = async (address: string, port: number): Promise<number> => {
    const began = performance.now();
    for (let i = 0; i < connections; i++)
      if ((await call(node.at("a"), address, port)) === undefined) throw new Error(`"${address}" does not answer`);
    return performance.now() - began;
  };
  return compare({
    measure: `${connections} new connections, by one of ${text}`,
    rounds,
    ours: () => timed(vip, 80),
    peer: () => timed(addresses.b[4], 8_080),
    peerName: "the pod's own address",
  });
}

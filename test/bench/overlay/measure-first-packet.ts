import { endpointAt, servicePort } from "../../fakes/service-port.ts";
import { call, NamedServer } from "../../overlay/named-server.ts";
import { ServiceNode } from "../../overlay/service-node.ts";
import { compare, type Row } from "../row.ts";
import type { OverlaySetting } from "./measure-overlay.ts";
import { manyServices } from "./measure-services.ts";

const port = 8080;
const directPort = 8081;
/** Of one connection: a switch that has just been told of 100,000 endpoints may be at it for a while. */
const patienceMs = 60_000;
/** In each round, of which the sum is told: one alone is too short for the clock of a busy machine. */
const connections = 50;

/** From a pod to another by a service, each connection a new one, among so many services; against the pod's own address. */
export async function measureFirstPacket({
  services: size,
  rounds,
  progress,
}: Pick<OverlaySetting, "services" | "rounds" | "progress">): Promise<Row> {
  const measure = `${connections} new connections, by one of ${size.count} services`;
  progress(measure);
  await using node = await ServiceNode.start(2);
  // Each has its own: a pod's connections to a service and to its endpoint may have the same port, and meet.
  using _ = await NamedServer.start(node.pod(0).namespace, "pod0", port);
  using __ = await NamedServer.start(node.pod(0).namespace, "pod0", directPort);
  const own = servicePort({ clusterIp: "10.96.255.10", endpoints: [endpointAt(node.pod(0)[4], port)] });
  await node.serve(own, ...manyServices(size));
  const timed = async (address: string, to: number): Promise<number> => {
    const began = performance.now();
    for (let i = 0; i < connections; i++)
      if ((await call(node.pod(1).namespace, address, to, patienceMs)) === undefined)
        throw new Error(`"${address}" does not answer`);
    return performance.now() - began;
  };
  return await compare({
    measure,
    rounds,
    ours: () => timed("10.96.255.10", 80),
    peer: () => timed(node.pod(0)[4], directPort),
    peerName: "the pod's own address",
  });
}

import { formatIp, type Ip } from "../../../../shared/net/ip.ts";
import {
  type Connection,
  type ConnectionFilter,
  deleteConnection,
  Errno,
  listConnections,
  type NetlinkSocket,
  readConnection,
} from "../../../protocols/netlink/mod.ts";
import { runEach, throwFirst } from "../../linux/kernel-errors.ts";
import type { ServicePort } from "../../services.ts";
import { entrancesOf } from "./service-elements.ts";
import type { ServiceChange } from "./standing-services.ts";

const udp = 17;

/** From here on the kernel is asked once for all connections instead of for each entrance. */
const manyEntrances = 32;

/** Who may answer at an entrance, as `address port`. */
type Answers = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Ends connections of UDP at services that have changed where whoever answers is no endpoint any more, or never was:
 * with them the kernel would lead a client that goes on by the same port to where its first packet went.
 * @param isOwn whether the node has the address
 * @throws {NetlinkError}
 */
export function endStaleConnections(
  socket: NetlinkSocket,
  changes: readonly ServiceChange[],
  isOwn: (ip: Ip) => boolean,
): void {
  const answers = new Map<string, ReadonlySet<string>>();
  const filters = new Map<string, ConnectionFilter>();
  for (const port of changes.flatMap(({ before }) => before ?? [])) note(port, new Set());
  for (const port of changes.flatMap(({ after }) => after ?? []))
    note(
      port,
      new Set([...port.internal, ...port.cluster, ...port.external].map((each) => nameOf(each.ip, each.port))),
    );
  const families = new Set([...filters.values()].map(({ family }) => family));
  const asked =
    filters.size < manyEntrances ? [...filters.values()] : [...families].map((family) => ({ family, protocol: udp }));
  const stale = asked
    .flatMap((filter) => socket.dump(listConnections(filter), readConnection))
    .filter((connection) => isStale(connection, answers, isOwn));
  throwFirst(runEach(socket, stale.map(deleteConnection), Errno.ENOENT));

  function note(service: ServicePort, who: ReadonlySet<string>): void {
    const { family } = service.clusterIp;
    for (const { ip, port } of entrancesOf(service, true)) {
      const name = ip === undefined ? `node${family} ${port}` : nameOf(ip, port);
      answers.set(name, who);
      const destination = ip === undefined ? {} : { destination: ip };
      filters.set(name, { family, protocol: udp, destinationPort: port, ...destination });
    }
  }
}

function isStale(connection: Connection, answers: Answers, isOwn: (ip: Ip) => boolean): boolean {
  const { family, destination, destinationPort, answers: who, answersFrom } = connection;
  const name = nameOf(who, answersFrom);
  const atAddress = answers.get(nameOf(destination, destinationPort));
  if (atAddress !== undefined) return !atAddress.has(name);
  const atNode = answers.get(`node${family} ${destinationPort}`);
  return atNode !== undefined && isOwn(destination) && !atNode.has(name);
}

const nameOf = (ip: Ip, port: number): string => `${formatIp(ip)} ${port}`;

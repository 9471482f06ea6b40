import { type Cidr, formatCidr, formatIp, type Ip } from "../../../../../shared/net/ip.ts";
import { otherwiseEncrypted } from "../../../../cluster/node-encryption.ts";
import type { ClusterNode } from "../../../../cluster/node-registry.ts";
import type { DeviceState, PeerChange } from "../../../../protocols/wireguard/mod.ts";
import type { Agreed } from "./handshake-ages.ts";

/** Another node as the device is to have it. */
export interface WantedPeer {
  readonly node: string;
  readonly key: string;
  readonly ip: Ip;
  /** Its pods' subnets: nobody else is believed under their addresses. */
  readonly allowed: readonly Cidr[];
}

/**
 * How often a node greets another with whom it has nothing to say. So a key that does not fit shows within minutes, and
 * not with the first pod that wants something. A greeting is 32 bytes of UDP's.
 */
export const keepaliveSeconds = 25;

/**
 * The nodes that encrypt as this one does, and sentences about the others.
 * @param nodes of which no two have one public key (`peersOf`)
 */
export function wantedPeers(
  nodes: readonly ClusterNode[],
  ownFamilies: ReadonlySet<number>,
): { readonly peers: readonly WantedPeer[]; readonly strangers: readonly string[] } {
  const peers: WantedPeer[] = [];
  const strangers: string[] = [];
  for (const { name, addresses, subnets, encryption } of nodes) {
    const ip = addresses.toSorted((a, b) => a.family - b.family).find(({ family }) => ownFamilies.has(family));
    const refuse = (is: string): void => void strangers.push(`nothing goes to the pods of node "${name}": ${is}`);
    if (encryption?.type !== "wireguard") {
      refuse(otherwiseEncrypted(encryption, "wireguard") ?? "");
      continue;
    }
    if (ip === undefined) refuse("it has no address of a family that this node has");
    else peers.push({ node: name, key: encryption.key, ip, allowed: subnets });
  }
  return { peers, strangers };
}

/**
 * What a device lacks. A new peer takes its blocks from another one, as where a node has a new key: in between there is
 * always somebody who keeps packets for it. It must be there before it gets them, since a daemon starts it at its end.
 * Who is not wanted gets nothing more, and is there as long as what was read for it has not been sent: `idlePeers`. An
 * end that has moved by itself stays where it is until the registry tells another address than before.
 * @param told the address that the device was told last of each key
 * @param greetsLater who is not greeted yet (`greetsSecond`); absent: nobody
 * @param again tells every end once more where the others are, as they are known now: a daemon goes on sending from an
 * address that the node no longer has, until then
 */
export function peerChanges(
  { peers: standing }: Pick<DeviceState, "peers">,
  wanted: readonly WantedPeer[],
  port: number,
  told: ReadonlyMap<string, string>,
  greetsLater: (peer: WantedPeer) => boolean = () => false,
  again = false,
): readonly PeerChange[] {
  const [isWanted, byKey] = [
    new Set(wanted.map(({ key }) => key)),
    new Map(standing.map((one) => [one.publicKey, one])),
  ];
  const gone = standing.filter(({ publicKey, allowed }) => !isWanted.has(publicKey) && allowed.length > 0);
  return [
    ...wanted.flatMap((peer) => {
      const { key, ip, allowed } = peer;
      const is = byKey.get(key);
      const hasMoved = is?.endpoint === undefined || told.get(key) !== formatIp(ip);
      const hasOthers = is === undefined || blocks(is.allowed) !== blocks(allowed);
      if (!hasMoved && !hasOthers && !again) return [];
      const known = hasMoved ? { ip, port } : is?.endpoint;
      return [
        ...(is === undefined ? [{ publicKey: key, allowed: [] }] : []),
        {
          publicKey: key,
          ...((hasMoved || again) && known !== undefined ? { endpoint: known } : {}),
          ...(hasOthers ? { allowed } : {}),
          ...(is === undefined && !greetsLater(peer) ? { keepaliveSeconds } : {}),
        },
      ];
    }),
    ...gone.map(({ publicKey }) => ({ publicKey, allowed: [] })),
  ];
}

/**
 * Whether this node leaves it to the other to greet first. Two that greet each other at once undo each other's handshake,
 * and the next attempt of either comes after five seconds (WireGuard's REKEY_TIMEOUT). So of two that come to know each
 * other only one greets at once: the one whose key is the lower one. Who has only taken another key is greeted at once
 * by everybody, because packets wait for that, and greets nobody itself.
 * @param known the nodes that were wanted before
 */
export const greetsSecond = (own: string, { node, key }: WantedPeer, known: readonly WantedPeer[]): boolean =>
  own > key && !known.some((one) => one.node === node);

/** Keys of those that are not wanted and get nothing more. */
export function idlePeers({ peers }: Pick<DeviceState, "peers">, wanted: readonly WantedPeer[]): readonly string[] {
  const isWanted = new Set(wanted.map(({ key }) => key));
  return peers.flatMap(({ publicKey, allowed }) =>
    allowed.length === 0 && !isWanted.has(publicKey) ? [publicKey] : [],
  );
}

const blocks = (cidrs: readonly Cidr[]): string => cidrs.map(formatCidr).sort().join();

/** A handshake is renewed every two minutes while there is anything to say, greetings too; after three its keys are void. */
const freshMs = 180_000;

/** A node with whom there are no common keys now. */
export interface SilentPeer {
  /** A sentence that stays the same for as long as it is so. */
  readonly is: string;
  /** Since when, for people. */
  readonly since: string;
}

/**
 * @param agreed how long ago the node with this key agreed on others
 * @param behind until when, by its clock, this node's own handshakes are not taken, since that was set back
 */
export function silentPeers(
  wanted: readonly WantedPeer[],
  agreed: (key: string) => Agreed,
  port: number,
  behind?: Date,
): readonly SilentPeer[] {
  return wanted.flatMap(({ node, key, ip }) => {
    const last = agreed(key);
    if (last.t !== "never" && last.ms <= freshMs) return [];
    const why =
      behind === undefined
        ? `its key is not the one that the registry tells, its clock was set back, or UDP ${port} does not get through`
        : `this node's clock was set back, and others take its handshakes only from ${behind.toISOString()} on, wanted the right time, or another key`;
    return [
      {
        is: `nothing goes to the pods of node "${node}" at ${formatIp(ip)}: it agrees on no keys: ${why}`,
        since: sinceText(last),
      },
    ];
  });
}

function sinceText(last: Agreed): string {
  if (last.t === "never") return "never so far";
  return last.t === "unknown" ? "the clock was set since the last time" : `${Math.floor(last.ms / 60_000)} minutes ago`;
}

import { maxContainerIdChars, maxIfnameBytes, maxNetworkNameChars } from "../../../shared/cni/names.ts";
import type { Owner } from "../../../shared/cni/types.ts";
import { type Cidr, formatCidr } from "../../../shared/net/ip.ts";
import { digest, ownerParts } from "../owner-names.ts";

/** What the two ends of an owner's pair are called; the same for the same owner at any time. */
export interface OwnerNames {
  /** The second name of the host end, derived from the owner alone, because a DEL knows nothing else. */
  readonly altName: string;
  /** Its neighbours' caches stay valid. */
  readonly podMac: Uint8Array;
  readonly hostMac: Uint8Array;
}

/** By one hash, whose bytes they share. */
export function ownerNames(owner: Owner): OwnerNames {
  const hash = digest("owner", owner.network, owner.sandboxId, owner.ifname);
  return { altName: altNameOf(hash), podMac: macOf(hash.subarray(20, 26)), hostMac: macOf(hash.subarray(26, 32)) };
}

export const ownerAltName = (owner: Owner): string => altNameOf(digest("owner", ...ownerParts(owner)));

const altNameOf = (hash: Uint8Array): string => `pipette-${hash.toHex().slice(0, 40)}`;

/** A unicast address out of the locally administered ones. */
function macOf(bytes: Uint8Array): Uint8Array {
  const mac = new Uint8Array(bytes);
  mac[0] = ((mac[0] ?? 0) & 0xfc) | 0x02;
  return mac;
}

/**
 * Of the interface that is the pods' gateway. Includes the subnets, because bridges of the same name on two nodes may
 * be connected.
 */
export function gatewayMac(bridge: string, subnets: readonly Cidr[]): Uint8Array {
  return macOf(digest("mac", "bridge", bridge, ...subnets.map(formatCidr)).subarray(0, 6));
}

/** The content of a host end's interface alias. */
export interface Alias {
  readonly owner: Owner;
  /** `true` where the address is a lease of our own allocator. */
  readonly ownLease: boolean;
}

const mark = "pipette";
const ownWord = "own";
const otherWord = "other";

/** IFALIASZ of the kernel, less its final zero. */
export const aliasBytes = 255;

/** None of the three names can hold a colon, and with their greatest lengths they fit. */
export function formatAlias({ owner, ownLease }: Alias): string {
  return [mark, ownLease ? ownWord : otherWord, owner.network, owner.sandboxId, owner.ifname].join(":");
}

/** The longest alias that `formatAlias` makes out of names within their limits. */
export const longestAlias =
  mark.length + otherWord.length + maxNetworkNameChars + maxContainerIdChars + maxIfnameBytes + 4;

/** `undefined` where the text is not one of ours. */
export function parseAlias(text: string): Alias | undefined {
  const [first, lease, network, sandboxId, ifname, ...rest] = text.split(":");
  if (first !== mark || rest.length > 0 || !network || !sandboxId || !ifname) return undefined;
  if (lease !== ownWord && lease !== otherWord) return undefined;
  return { owner: { network, sandboxId, ifname }, ownLease: lease === ownWord };
}

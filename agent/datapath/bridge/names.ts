import { createHash } from "node:crypto";
import type { Owner, Pod } from "../../../shared/cni/types.ts";
import { formatCidr } from "../../../shared/ip.ts";
import type { BridgeNetwork } from "./options.ts";

/** Letters of the readable part: "coredns-1a2b3c" with its six characters of hash has 15 at most. */
const prefixChars = 8;
const hashChars = 6;

/** Owner names hold no line feed, so that no two owners give the same text. */
function digest(...parts: readonly string[]): Buffer {
  return createHash("sha256").update(parts.join("\n")).digest();
}

const ownerParts = (owner: Owner): readonly string[] => [owner.network, owner.sandboxId, owner.ifname];

/**
 * Name of the host's end: what a person would look for, then what keeps two of the same name apart.
 * Without a pod (CNI_ARGS of another runtime) it starts with the sandbox id.
 */
export function hostIfname(owner: Owner, pod: Pod | undefined): string {
  const readable = (pod === undefined || pod.name === "" ? owner.sandboxId : pod.name)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, prefixChars)
    .replace(/^-+|-+$/g, "");
  const hash = digest("host name", ...ownerParts(owner), pod?.namespace ?? "", pod?.name ?? "");
  const number = hash.readUIntBE(0, 6) % 36 ** hashChars;
  return `${readable === "" ? "pod" : readable}-${number.toString(36).padStart(hashChars, "0")}`;
}

/** The second name of the host's end, from the owner alone: DEL knows nothing else. */
export function ownerAltName(owner: Owner): string {
  return `pipette-${digest("owner", ...ownerParts(owner)).toString("hex", 0, 20)}`;
}

/** A unicast address out of the locally administered ones. */
function localMac(...parts: readonly string[]): Uint8Array {
  const mac = Uint8Array.from(digest("mac", ...parts).subarray(0, 6));
  mac[0] = ((mac[0] ?? 0) & 0xfc) | 0x02;
  return mac;
}

/** The same owner always gets the same address, so that its neighbours' caches stay right when it comes again. */
export function podMac(owner: Owner): Uint8Array {
  return localMac("pod", ...ownerParts(owner));
}

export function hostMac(owner: Owner): Uint8Array {
  return localMac("host", ...ownerParts(owner));
}

/** With the subnets in it: bridges of one name on two nodes may meet when somebody connects them. */
export function bridgeMac(network: BridgeNetwork): Uint8Array {
  return localMac("bridge", network.bridge, ...network.subnets.map(formatCidr));
}

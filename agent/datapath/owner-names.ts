import type { Owner, Pod } from "../../shared/cni/types.ts";

/** Letters of the readable part: "coredns-1a2b3c" with its six characters of hash has 15 at most. */
const prefixChars = 8;
const hashChars = 6;

/** 32 bytes out of texts without line feeds, as owners' names are, so that no two lists of them give the same. */
export function digest(...parts: readonly string[]): Buffer {
  // An object that hashes piece by piece takes four times as long for texts as short as these.
  return Buffer.from(Bun.SHA256.hash(parts.join("\n")).buffer);
}

export const ownerParts = (owner: Owner): readonly string[] => [owner.network, owner.sandboxId, owner.ifname];

/**
 * Name of the host end: a readable part, then a hash that distinguishes equal names. At most 15 bytes, as Linux'
 * interfaces and the ports of Open vSwitch have it. Without a pod (CNI_ARGS of another runtime) it starts with the
 * sandbox id.
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

import type { Owner, Pod } from "../../shared/cni/types.ts";

/** Letters of the readable part: "coredns-1a2b3c" with its six characters of hash has 15 at most. */
const prefixChars = 8;
const hashChars = 6;

/** 32 bytes out of texts without line feeds, as owners' names are, so that no two lists of them give the same. */
export function digest(...parts: readonly string[]): Uint8Array {
  // An object that hashes piece by piece takes four times as long for texts as short as these.
  const hash = new Uint8Array(digestBytes);
  Bun.SHA256.hash(parts.join("\n"), hash);
  return hash;
}

const digestBytes = 32;

export const ownerParts = (owner: Owner): readonly string[] => [owner.network, owner.sandboxId, owner.ifname];

/**
 * Name of the host end: a readable part, then a hash that distinguishes equal names. At most 15 bytes, as Linux'
 * interfaces and the ports of Open vSwitch have it. Without a pod (CNI_ARGS of another runtime) it starts with the
 * sandbox id.
 */
export function hostIfname(owner: Owner, pod: Pod | undefined): string {
  const readable = prefixOf((pod === undefined || pod.name === "" ? owner.sandboxId : pod.name).toLowerCase());
  const { network, sandboxId, ifname } = owner;
  const hash = digest("host name", network, sandboxId, ifname, pod?.namespace ?? "", pod?.name ?? "");
  return `${readable === "" ? "pod" : readable}-${lastDigits(hash)}`;
}

const digits = 36;
/** So many of the hash's bytes make a number that is exact. */
const numberBytes = 6;

/** Of the number that the hash begins with, highest byte first, in digits of 36. */
function lastDigits(hash: Uint8Array): string {
  let number = 0;
  for (let i = 0; i < numberBytes; i++) number = number * 256 + (hash[i] ?? 0);
  return (number % digits ** hashChars).toString(digits).padStart(hashChars, "0");
}

const dash = 45;
/** Of which nothing has to be changed. */
const plain = /^[a-z0-9]+(?:-[a-z0-9]+)*-?$/;

/** The first letters and digits; whatever lies between them becomes one "-". */
function prefixOf(text: string): string {
  const start = text.slice(0, prefixChars);
  if (plain.test(start)) return start.endsWith("-") ? start.slice(0, -1) : start;
  const codes: number[] = [];
  for (let i = 0; i < text.length && codes.length < prefixChars; i++) {
    const code = text.charCodeAt(i);
    if ((code >= 48 && code <= 57) || (code >= 97 && code <= 122)) codes.push(code);
    else if (codes.at(-1) !== dash) codes.push(dash);
  }
  if (codes.at(-1) === dash) codes.pop();
  if (codes[0] === dash) codes.shift();
  return String.fromCharCode(...codes);
}

/** How a node encrypts what it sends to the others, as the registry tells it. */
export type NodeEncryption =
  /** With the node's public key, in base64. */
  { readonly type: "wireguard"; readonly key: string } | { readonly type: "ipsec" };

export const encryptionRule = '"ipsec", or "wireguard:" and a public key of 32 bytes in base64';

const wireguardPrefix = "wireguard:";

/** @returns `undefined` for what is none */
export function parseEncryption(text: string): NodeEncryption | undefined {
  if (text === "ipsec") return { type: "ipsec" };
  if (!text.startsWith(wireguardPrefix)) return undefined;
  const key = text.slice(wireguardPrefix.length);
  return isPublicKey(key) ? { type: "wireguard", key } : undefined;
}

export const formatEncryption = (encryption: NodeEncryption): string =>
  encryption.type === "ipsec" ? "ipsec" : `${wireguardPrefix}${encryption.key}`;

/** Why nothing goes to a node that encrypts in another way than this one; `undefined`: it does not. */
export function otherwiseEncrypted(
  encryption: NodeEncryption | undefined,
  own: NodeEncryption["type"],
): string | undefined {
  if (encryption?.type === own) return undefined;
  const is = encryption === undefined ? "it does not encrypt" : `it encrypts by "${encryption.type}"`;
  return `${is}, wanted "ovs.encryption: ${own}" there`;
}

/** 32 bytes in base64, of which the last two bits stay unused; the key of zeros is nobody's. */
export const isPublicKey = (text: string): boolean =>
  /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text) && !/^A{43}=$/.test(text);

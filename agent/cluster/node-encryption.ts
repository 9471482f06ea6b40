/** How a node encrypts what it sends to the others, as the registry tells it. */
export interface NodeEncryption {
  readonly type: "wireguard";
  /** The node's public key, in base64. */
  readonly key: string;
}

export const encryptionRule = '"wireguard:" and a public key of 32 bytes in base64';

const wireguardPrefix = "wireguard:";

/** @returns `undefined` for what is none */
export function parseEncryption(text: string): NodeEncryption | undefined {
  if (!text.startsWith(wireguardPrefix)) return undefined;
  const key = text.slice(wireguardPrefix.length);
  return isPublicKey(key) ? { type: "wireguard", key } : undefined;
}

export const formatEncryption = ({ key }: NodeEncryption): string => `${wireguardPrefix}${key}`;

/** 32 bytes in base64, of which the last two bits stay unused; the key of zeros is nobody's. */
export const isPublicKey = (text: string): boolean =>
  /^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text) && !/^A{43}=$/.test(text);

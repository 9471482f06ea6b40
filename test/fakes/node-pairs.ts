import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { issueAuthority } from "../../shared/certificates/issue.ts";
import { type Issued, issueMember } from "../../shared/certificates/mod.ts";

const hourMs = 60 * 60_000;

/** A node's key; making one takes long. */
export const newNodeKey = (): string =>
  String(generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ type: "pkcs1", format: "pem" }));

export const nodeKeys: readonly string[] = [newNodeKey(), newNodeKey()];

/** An authority that holds around now. */
export const authority = (name = "ca"): Issued =>
  issueAuthority(name, { from: new Date(Date.now() - 48 * hourMs), until: new Date(Date.now() + 1000 * hourMs) });

export interface PairWishes {
  readonly node?: string;
  readonly organization?: string;
  readonly ca?: Issued;
  readonly privateKey?: string;
  /** Hours from now. */
  readonly from?: number;
  readonly until?: number;
}

const usual = authority();

/** A node's certificate, its key, and who signed it. */
export function nodePair(wishes: PairWishes = {}): { certificate: string; privateKey: string; ca: string } {
  const { node: name = "node-a", organization = "pipette.io", ca = usual, from = -1, until = 24 } = wishes;
  const privateKey = wishes.privateKey ?? nodeKeys[0] ?? "";
  const publicKey = createPublicKey(privateKey);
  const validity = { from: new Date(Date.now() + from * hourMs), until: new Date(Date.now() + until * hourMs) };
  return { certificate: issueMember({ organization, name, publicKey }, ca, validity), privateKey, ca: ca.cert };
}

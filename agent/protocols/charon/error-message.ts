/** Kinds of errors, as the plugin error-notify of strongSwan 5.9 numbers them. */
export const ErrorType = {
  localAuthFailed: 2,
  peerAuthFailed: 3,
  retransmitTimeout: 6,
  halfOpenTimeout: 7,
  proposalMismatchIke: 8,
  proposalMismatchChild: 9,
  selectorMismatch: 10,
  installChildSaFailed: 11,
  installChildPolicyFailed: 12,
  authorizationFailed: 16,
  certificateExpired: 17,
  certificateRevoked: 18,
  noIssuerCertificate: 19,
} as const;

export interface CharonError {
  readonly type: number;
  /** The daemon's own words. */
  readonly text: string;
  /** Name of the connection, empty where it is not known. */
  readonly connection: string;
  /** The peer's address and port, `192.0.2.7[500]`, empty where it is not known. */
  readonly peer: string;
}

const sizes = { text: 384, connection: 64, identity: 256, peer: 60 } as const;
/** Every message has the same length. */
export const messageBytes = 4 + sizes.text + sizes.connection + sizes.identity + sizes.peer;

/** Reads one message: texts end at their first zero. */
export function readError(bytes: Uint8Array): CharonError {
  const type = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0);
  const textAt = (at: number, size: number): string => {
    const whole = bytes.subarray(at, at + size);
    const end = whole.indexOf(0);
    return new TextDecoder().decode(end < 0 ? whole : whole.subarray(0, end));
  };
  const connectionAt = 4 + sizes.text;
  return {
    type,
    text: textAt(4, sizes.text),
    connection: textAt(connectionAt, sizes.connection),
    peer: textAt(connectionAt + sizes.connection + sizes.identity, sizes.peer),
  };
}

/** Certificates by which nodes know each other in IPsec, as agents ask for them and controllers sign them. */
export const tunnelCertificate = {
  /** Of a CertificateSigningRequest (certificates.k8s.io/v1): who is to sign it. */
  signerName: "pipette.io/ipsec-tunnel",
  /** Of the subject, before the node's name. */
  organization: "pipette.io",
  /** The one usage of a CertificateSigningRequest. */
  usage: "ipsec tunnel",
  /** Where agents find whom to trust, under "ca.crt", the one that signs first. */
  configMap: "pipette-ipsec-ca",
  /** Bits of an RSA key: what the monitor of Open vSwitch tells strongSwan that keys are. */
  keyBits: { least: 2048, most: 4096 },
  /** The API server takes none shorter, and we sign none longer. */
  lifetimeS: { least: 600, most: 365 * 24 * 60 * 60 },
  /** A certificate holds from so long before it is signed: clocks of nodes may be behind. */
  earlierMs: 5 * 60_000,
} as const;

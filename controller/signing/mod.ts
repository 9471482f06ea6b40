/** Certificates of nodes for IPsec between them: who gets one, and who signs it. */
export { GivenAuthoritySource, KeptAuthoritySource } from "./signing-authority.ts";
export { TunnelSigner } from "./tunnel-signer.ts";

/** Certificates of servers and of nodes: asked for, issued here or given, and renewed before they end. */
export { FollowedCertificates } from "./followed-certificates.ts";
export { GivenCertificates } from "./given-certificates.ts";
export { type Issued, issueMember } from "./issue.ts";
export { attributeIds } from "./names.ts";
export { type Kept, type KeptAuthority, madeAtMs, renewed, renewedAuthority } from "./renewal.ts";
export { makeRequest, readRequest, type SigningRequest } from "./request.ts";
export { bundleOf, type CertificateSource, certificateIn, isKeyOf, type Serving } from "./serving.ts";
export { tunnelCertificate } from "./tunnel-certificate.ts";

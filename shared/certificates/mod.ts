/** Certificates of a server: issued here or given, and renewed before they end. */
export { FollowedCertificates } from "./followed-certificates.ts";
export { GivenCertificates } from "./given-certificates.ts";
export { type Kept, renewed } from "./renewal.ts";
export type { CertificateSource, Serving } from "./serving.ts";

/** The certificates of the server: made here or given, renewed before they end, and known to all who connect. */
export { FollowedCertificates } from "./followed-certificates.ts";
export { GivenCertificates } from "./given-certificates.ts";
export { KeptCertificates } from "./kept-certificates.ts";
export { type PublishedIn, publish } from "./publish.ts";
export type { CertificateSource } from "./serving.ts";

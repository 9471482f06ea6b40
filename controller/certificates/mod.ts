/** The certificates of the controller: kept in a Secret, and known to all who connect. */
export { KeptCertificates } from "./kept-certificates.ts";
export { KeptSecret } from "./kept-secret.ts";
export { type PublishedIn, publish, publishConfigMap } from "./publish.ts";

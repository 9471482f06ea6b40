/** The certificates of the controller: kept in a Secret, and known to all who connect. */
export { KeptCertificates } from "./kept-certificates.ts";
export { type PublishedIn, publish } from "./publish.ts";

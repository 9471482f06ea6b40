/** By which certificate this node is known to the others in IPsec: given in files, or asked of the cluster. */
export { openCertificates } from "./open-certificates.ts";

import { reasonOf } from "../reason.ts";

/** What `node:net`, `node:tls`, `node:http2` and `fetch` throw, as the middle of a sentence. They quote no header. */
export function transportReason(caught: unknown, server: string): string {
  const { code, message } = (caught ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  switch (code) {
    case "ECONNREFUSED":
    case "ConnectionRefused":
      return `nobody listens at ${server} (${code}), wanted the API server`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the name in ${server} cannot be resolved (${code})`;
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return `the certificate of ${server} is for another name (${message})`;
    // Also what a node's clock that is years behind makes of a good one.
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return `the certificate of ${server} does not hold at this time (${message}), wanted one that does, and the right time here`;
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
      return `the certificate of ${server} is not trusted (${message}), wanted one that the given CA signed`;
    default:
      return reasonOf(caught);
  }
}

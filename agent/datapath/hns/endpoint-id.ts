import type { Owner } from "../../../shared/cni/types.ts";
import { digest, ownerParts } from "../owner-names.ts";

/**
 * The identifier of an owner's endpoint: always the same, so that an endpoint whose creation was given up is found
 * again, and a DEL needs no record. RFC 9562, version 8: a GUID of one's own making.
 */
export function endpointId(owner: Owner): string {
  const bytes = Uint8Array.from(digest("endpoint", ...ownerParts(owner)).subarray(0, 16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = Buffer.from(bytes).toString("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

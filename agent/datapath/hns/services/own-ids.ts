import { randomBytes } from "node:crypto";
import { digest } from "../../owner-names.ts";

/**
 * Identifiers of what we make in HNS for services: the second half follows from the first. So each of our objects can
 * be told from everybody else's by its identifier alone, and no record can be missing or wrong.
 *
 * An agent that is killed between a call and a record of it would leave an object of nobody's, or a record that claims
 * another's. Here nothing has to be written: HNS gives an object the identifier that it is asked for, so whatever it has
 * made of us, at whatever time, the next agent knows for ours. Nobody else's is deleted, as 64 bits would have to agree
 * by chance. A new object always has a new identifier: a deletion that was given up and comes true later cannot hit its
 * successor.
 */
export function newOwnId(): string {
  const first = randomBytes(8).toString("hex");
  const hex = first + markOf(first);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

/** @param id in our form (`parseGuid`) */
export function isOwnId(id: string): boolean {
  const hex = id.replaceAll("-", "");
  return markOf(hex.slice(0, 16)) === hex.slice(16);
}

const markOf = (first: string): string => digest("pipette service", first).subarray(0, 8).toHex();

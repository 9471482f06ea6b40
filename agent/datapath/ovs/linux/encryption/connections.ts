/**
 * The connections of the IKE daemon, as ovs-monitor-ipsec answers to `ipsec/status`: a dictionary of Python's, whose
 * inner values are lines of `ipsec status`. Only they are read, by their beginnings: `NAME[1]: ESTABLISHED …` is an IKE
 * SA, `NAME{2}:  INSTALLED …` keys for packets, `NAME{2}:  ROUTED …` what waits for a first packet.
 */

/** What is known of the keys agreed with one node. */
export interface Agreement {
  /** There are keys for packets to it. */
  readonly isInstalled: boolean;
  /** Each end has shown the other what it wanted. */
  readonly isEstablished: boolean;
  /** It is being asked, and has not answered yet. */
  readonly isAsking: boolean;
}

const line = /'([\w.-]{1,15}?)(?:-(in|out))?-\d{1,10}([[{])\d{1,10}[\]}]:\s{1,4}([A-Z_]{3,24})/g;

/** @returns by the port's name; nothing of those that have no connection */
export function readAgreements(answer: string): ReadonlyMap<string, Agreement> {
  const found = new Map<string, Agreement>();
  // Each line stands in the answer twice: as a key, without a state, and as a value.
  for (const [, port = "", direction, bracket, state] of answer.matchAll(line)) {
    const { isInstalled = false, isEstablished = false, isAsking = false } = found.get(port) ?? {};
    const isIke = bracket === "[";
    found.set(port, {
      isInstalled: isInstalled || (!isIke && state === "INSTALLED" && direction !== "in"),
      isEstablished: isEstablished || (isIke && state === "ESTABLISHED"),
      isAsking: isAsking || (isIke && state === "CONNECTING"),
    });
  }
  return found;
}

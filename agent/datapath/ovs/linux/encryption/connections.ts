/** What is known of the keys agreed with one node. */
export interface Agreement {
  /** There are keys for packets to it. */
  readonly isInstalled: boolean;
  /** It is being asked, and has not answered yet. */
  readonly isAsking: boolean;
}

/**
 * The connections of the IKE daemon, as ovs-monitor-ipsec answers to `ipsec/status`: a dictionary of Python's with lines
 * of `ipsec status`, of each connection the last one alone. So of an IKE SA its state is there,
 * `'NAME[1]': 'NAME[1]: ESTABLISHED …'`, and of keys for packets only that `'NAME{2}': …` is there: it may as well be
 * what waits for a first packet.
 * @param areTrapped something waits for the first packet of each connection: keys are those beside it
 * @returns by the port's name; nothing of those that have no connection
 */
export function readAgreements(answer: string, areTrapped: boolean): ReadonlyMap<string, Agreement> {
  const children = new Map<string, { readonly version: number; readonly count: number }>();
  for (const [, port = "", direction, digits = ""] of answer.matchAll(child)) {
    // What packets to the other node need.
    if (direction === "in") continue;
    const [version, before] = [Number(digits), children.get(port)];
    // An earlier version of the connection is about to be taken down.
    if (before !== undefined && before.version > version) continue;
    children.set(port, { version, count: before?.version === version ? before.count + 1 : 1 });
  }
  const asking = new Set([...answer.matchAll(beginning)].map(([, port = ""]) => port));
  const least = areTrapped ? 2 : 1;
  return new Map(
    [...new Set([...children.keys(), ...asking])].map((port) => [
      port,
      { isInstalled: (children.get(port)?.count ?? 0) >= least, isAsking: asking.has(port) },
    ]),
  );
}

const child = /'([\w.-]{1,15}?)(?:-(in|out))?-(\d{1,10})\{\d{1,10}\}':/g;
const beginning = /'([\w.-]{1,15}?)(?:-(?:in|out))?-\d{1,10}\[\d{1,10}\]: CONNECTING/g;

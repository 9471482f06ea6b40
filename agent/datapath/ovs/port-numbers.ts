/** Below the node's own ports, above those that the switch gives by itself. */
const first = 1024;
export const lastPodNumber = 32_767;

/**
 * Numbers for pods' ports, one after the other, so that a port that has just gone leaves its number to nobody soon:
 * flows that still name it lead nowhere. Known before the switch has made the port, flows go in meanwhile.
 */
export class PortNumbers {
  #given: number | undefined;

  /** @param taken those that ports have now. Answers 0, which leaves it to the switch, where all are taken. */
  next(taken: ReadonlySet<number>): number {
    const own = [...taken].filter((number) => number >= first && number <= lastPodNumber);
    if (own.length > lastPodNumber - first) return 0;
    let number = this.#given ?? Math.max(first - 1, ...own);
    do number = number >= lastPodNumber ? first : number + 1;
    while (taken.has(number));
    this.#given = number;
    return number;
  }
}

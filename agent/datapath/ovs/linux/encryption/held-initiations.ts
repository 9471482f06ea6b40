import { requireScript } from "../../../linux/packet-rule-script.ts";
import { guardTable } from "./clear-guard.ts";

/**
 * WireGuard's REKEY_TIMEOUT: a node whose handshake initiation was not answered sends another one after this time, and
 * then it may. By the kernel's clock, so that nothing is held for longer where the agent is killed meanwhile.
 */
const heldSeconds = 5;

/** A handshake initiation: its type, and three bytes of zero (WireGuard, section 5.4.2). */
const isInitiation = "udp length 156 @th,64,32 0x01000000";

/**
 * Keeps a node's handshake initiations back while nobody knows its new key. They would be of no use then, but one that
 * is still on its way when the other node hears of the key meets the other's own: each of two ends that greet at once
 * forgets its own handshake for the other's, and for five seconds there is none. Packets for the other node wait
 * meanwhile, and its initiations are answered as ever.
 */
export class HeldInitiations {
  readonly #table: string;
  readonly #port: number;

  /**
   * @param gateway interface that leads to the node's own pods: the rule is in the table of its `ClearGuard`
   * @param port of UDP, from which the node sends them
   */
  constructor(gateway: string, port: number) {
    const { family, name } = guardTable(gateway);
    this.#table = `${family} ${name}`;
    this.#port = port;
  }

  /** For five seconds from now on, or until `release`. @throws {CniError} 102 */
  hold(): Promise<void> {
    const element = `element ${this.#table} held-ports`;
    return this.#load("hold handshakes back", [
      `add chain ${this.#table} initiating { type filter hook output priority filter; policy accept; }`,
      `flush chain ${this.#table} initiating`,
      `add rule ${this.#table} initiating udp sport @held-ports ${isInitiation} drop`,
      // One that is there would keep its time.
      `add ${element} { ${this.#port} }`,
      `delete ${element} { ${this.#port} }`,
      `add ${element} { ${this.#port} timeout ${heldSeconds}s }`,
    ]);
  }

  /** @throws {CniError} 102 */
  release(): Promise<void> {
    return this.#load("let handshakes go", [`flush set ${this.#table} held-ports`]);
  }

  #load(action: string, lines: readonly string[]): Promise<void> {
    const set = `add set ${this.#table} held-ports { type inet_service; flags timeout; }`;
    return requireScript(action, [`table ${this.#table}`, set, ...lines]);
  }
}

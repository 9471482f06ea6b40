import { Conversation } from "../overlay/lab/conversation.ts";
import type { CniEnded, Running } from "../support/cni-call.ts";
import type { UpgradePod } from "./upgrade-node.ts";

/** Traffic between two pods that has to outlive whatever is done to their node: a connection, and pings. */
export class Crossing implements AsyncDisposable {
  readonly #conversation: Conversation;
  readonly #pings: Running;
  #isPinging = true;

  private constructor(conversation: Conversation, pings: Running) {
    this.#conversation = conversation;
    this.#pings = pings;
  }

  /** @param index of the address among those of `to` */
  static async start(from: UpgradePod, to: UpgradePod, index: 0 | 1): Promise<Crossing> {
    const address = to.result.ips[index]?.address.replace(/\/.*/, "") ?? "";
    const conversation = await Conversation.start(from.namespace, to.namespace, address);
    return new Crossing(conversation, from.namespace.start(["ping", "-n", "-q", "-i", "0.02", address]));
  }

  /** Waits for an answer to what is said from now on. @throws where the connection has ended */
  goesOn(): Promise<void> {
    return this.#conversation.goesOn();
  }

  /** Ends it. @returns pings that had no answer, but for one that may be on its way */
  async lost(): Promise<number> {
    const { stdout } = await this.#endPings();
    const [, sent = "", received = ""] = /(\d+) packets transmitted, (\d+) received/.exec(stdout) ?? [];
    if (Number(sent) < 10) throw new Error(`Cannot judge the traffic: ${stdout}, wanted at least ten pings`);
    return Math.max(0, Number(sent) - Number(received) - 1);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#conversation[Symbol.dispose]();
    await this.#endPings();
  }

  #endPings(): Promise<CniEnded> {
    if (this.#isPinging) process.kill(this.#pings.pid, "SIGINT");
    this.#isPinging = false;
    return this.#pings.ended;
  }
}

import { MessageType } from "./constants.ts";
import { refusedBy } from "./error-message.ts";
import { batchAction, type Exchange, keep, unexpected } from "./exchange.ts";
import { BundleControl, type Message } from "./message.ts";
import { InvalidFlow, OpenFlowError } from "./openflow-error.ts";
import type { Request } from "./request.ts";
import type { WireWriter } from "./wire-writer.ts";

/** OFPBF_ATOMIC and OFPBF_ORDERED: all or nothing for packets too, in the order of the messages. */
const flags = 3;

/** Open vSwitch takes these into a bundle. */
const bundled: readonly number[] = [MessageType.FLOW_MOD, MessageType.GROUP_MOD, MessageType.PACKET_OUT];

/** A bundle's messages: the switch answers "too many" on its own much later. */
const maxBundleMessages = 100_000;

/** @throws {InvalidFlow} for a request that no bundle takes @throws {OpenFlowError} where they are too many */
export function checkBundled(requests: readonly Request[]): void {
  const other = requests.find(({ type }) => !bundled.includes(type));
  if (other !== undefined)
    throw new InvalidFlow("a bundle", `"${other.action}" is not for bundles, wanted flows and groups`);
  if (requests.length > maxBundleMessages) {
    const is = `${requests.length} are given, wanted ${maxBundleMessages} at the most`;
    throw new OpenFlowError("full", "make changes in a bundle", is);
  }
}

/** OFPT_BUNDLE_CONTROL (OpenFlow 1.5.1, 7.3.9). */
export function bundleControl(bundle: number, control: number): Request {
  return {
    action: `do ${control} with bundle ${bundle}`,
    type: MessageType.BUNDLE_CONTROL,
    body: (writer) => void writer.u32(bundle).u16(control).u16(flags),
  };
}

/** OFPT_BUNDLE_ADD_MESSAGE: what the message is in stands in front of it; its header is written by `inner`. */
export function bundleAdd(
  bundle: number,
  request: Request,
  inner: (writer: WireWriter, request: Request) => void,
): Request {
  return {
    get action() {
      return request.action;
    },
    type: MessageType.BUNDLE_ADD_MESSAGE,
    body: (writer) => {
      writer.u32(bundle).u16(0).u16(flags);
      inner(writer, request);
    },
  };
}

type Step = "adding" | "committing" | "discarding";

/**
 * One bundle from OPEN to COMMIT. A switch commits what it could read of a bundle even where it refused a message of
 * it: so an error at any of them discards the bundle, and nothing is changed.
 */
export class BundleExchange implements Exchange {
  readonly #requests: readonly Request[];
  readonly #refused: OpenFlowError[] = [];
  readonly #next: (control: number) => void;
  readonly #waiting: { resolve(): void; reject(reason: OpenFlowError): void };
  #step: Step = "adding";

  /** @param next sends one more control message, numbered behind those that were sent: OPEN, the requests, CLOSE */
  constructor(
    requests: readonly Request[],
    next: (control: number) => void,
    waiting: { resolve(): void; reject(reason: OpenFlowError): void },
  ) {
    this.#requests = requests;
    this.#next = next;
    this.#waiting = waiting;
  }

  get action(): string {
    return batchAction(this.#requests);
  }

  answered(message: Message, nth: number): boolean {
    if (message.t === "error") {
      const request = this.#requests[nth - 1];
      if (request !== undefined) {
        keep(this.#refused, message, request);
        return false;
      }
      return this.#onRefusedControl(refusedBy(message, this.action), nth);
    }
    if (message.t === "bundle") return this.#onControl(message.control);
    this.#waiting.reject(unexpected(this.action, `a message "${message.t}" came`));
    return true;
  }

  failed(error: OpenFlowError): void {
    // After a timeout the bundle is discarded, so that it does not stay in the switch's memory.
    if (error.kind === "late" && this.#step === "adding") this.#next(BundleControl.DISCARD_REQUEST);
    this.#waiting.reject(error);
  }

  #onControl(control: number): boolean {
    if (control === BundleControl.OPEN_REPLY) return false;
    if (control === BundleControl.CLOSE_REPLY && this.#step === "adding") {
      const isGood = this.#refused.length === 0;
      this.#step = isGood ? "committing" : "discarding";
      this.#next(isGood ? BundleControl.COMMIT_REQUEST : BundleControl.DISCARD_REQUEST);
      return false;
    }
    if (control === BundleControl.COMMIT_REPLY && this.#step === "committing" && this.#refused.length === 0) {
      this.#waiting.resolve();
      return true;
    }
    this.#waiting.reject(this.#refused[0] ?? unexpected(this.action, `the bundle is answered with ${control}`));
    return true;
  }

  /**
   * OPEN, CLOSE, COMMIT or DISCARD was refused; an earlier error of one of the bundle's messages is the better reason.
   */
  #onRefusedControl(refusal: OpenFlowError, nth: number): boolean {
    const isClose = nth === this.#requests.length + 1;
    // A refused OPEN is followed by a refusal of each message, and of CLOSE.
    if (nth === 0) {
      this.#refused.unshift(refusal);
      return false;
    }
    if (isClose && this.#step === "adding") this.#next(BundleControl.DISCARD_REQUEST);
    this.#waiting.reject(this.#refused[0] ?? refusal);
    return true;
  }
}

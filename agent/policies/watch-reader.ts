import { ApiError, decodeEnvelope, FrameCutter, textIn } from "../../shared/kubernetes/mod.ts";
import {
  ComputedPod,
  decodeObject,
  decodeWatchEvent,
  staleAnnotation,
} from "../../shared/proto/control-plane-messages.ts";
import { type PolicyEvent, readEvent } from "./events.ts";

/** Who hears what a watch says, in its order. What it throws ends the watch. */
export interface WatchListener {
  event(event: PolicyEvent): void;
  /** All that there is has been said; from now on come changes. @param isStale whether an earlier process computed it */
  complete(isStale: boolean): void;
}

/** One object: a group of all pods of the largest clusters, three times. */
const maxFrameBytes = 32 * 1024 * 1024;
/** All that is said before changes come: what a node with every policy of the largest clusters would hear. */
const maxInitialBytes = 512 * 1024 * 1024;

/** Reads a watch of policies, pods and groups in protobuf, however its bytes are cut. Nothing after an error counts. */
export class WatchReader {
  readonly #action: string;
  readonly #listener: WatchListener;
  readonly #frames = new FrameCutter("lengths", maxFrameBytes);
  #isComplete = false;
  #initialBytes = 0;

  /** @param action for errors: `follow the policies of node "n1"` */
  constructor(action: string, listener: WatchListener) {
    this.#action = action;
    this.#listener = listener;
  }

  /**
   * @throws {ApiError} for what no controller says, or the listener refuses; and in the controller's words where it says
   * that it ends
   */
  push(chunk: Uint8Array): void {
    try {
      if (!this.#isComplete) this.#initialBytes += chunk.length;
      if (this.#initialBytes > maxInitialBytes)
        throw new Error(`the initial set has more than ${maxInitialBytes} bytes`);
      for (const frame of this.#frames.push(chunk)) this.#read(frame);
    } catch (caught) {
      throw ApiError.from(caught, this.#action);
    }
  }

  /** Whether all that there is has been said. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether the bytes so far are whole events, the initial set among them. */
  get isWhole(): boolean {
    return this.#isComplete && this.#frames.isWhole;
  }

  #read(frame: Uint8Array): void {
    const { type, object } = decodeWatchEvent(frame);
    if (type === "ERROR")
      throw new Error(`the controller ends it: ${textIn(decodeEnvelope(object, {}), "message") ?? "without a reason"}`);
    const { kind, raw } = decodeObject(object);
    if (type === "BOOKMARK") {
      if (this.#isComplete) throw new Error("its initial set ends twice");
      this.#isComplete = true;
      const { annotations } = ComputedPod.decode(raw).metadata;
      this.#listener.complete(annotations.some(({ key, value }) => key === staleAnnotation && value === "true"));
      return;
    }
    if (!this.#isComplete && type !== "ADDED") throw new Error(`its initial set has "${type}" of a ${kind}`);
    this.#listener.event(readEvent(type, kind, raw));
  }
}

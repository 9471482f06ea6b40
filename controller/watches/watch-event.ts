import { encodeWatchFrame, type ObjectMeta, type WatchEventType } from "../../shared/proto/control-plane-messages.ts";
import { type ApiKind, type Encoding, jsonLine, jsonObject, objectBytes } from "./api-kind.ts";

/** What can be watched by itself. Marks of pods come on the ordered watch alone. */
export type WatchedResource = "networkpolicies" | "addressgroups" | "appliedtogroups" | AbsentResource;

/** Of what Antrea's agents follow for other features: there is none of it, which they have to be told. */
type AbsentResource = "egressgroups" | "supportbundlecollections";

/** One event, encoded once for all who watch. */
export class WatchEvent {
  /** Absent: only of the ordered watch. */
  readonly resource: WatchedResource | undefined;
  readonly #frame: (encoding: Encoding) => Uint8Array;
  readonly #frames = new Map<Encoding, Uint8Array>();
  /** Told of the size of each encoding. */
  onEncoded: ((bytes: number) => void) | undefined;

  /** @param make its object, as long as nothing has changed since */
  static of<M>(type: WatchEventType, resource: WatchedResource | undefined, kind: ApiKind<M>, make: () => M) {
    return new WatchEvent(resource, (encoding) =>
      encoding === "protobuf"
        ? encodeWatchFrame(type, objectBytes(kind, make(), encoding))
        : jsonLine(type, jsonObject(kind, make())),
    );
  }

  private constructor(resource: WatchedResource | undefined, frame: (encoding: Encoding) => Uint8Array) {
    this.resource = resource;
    this.#frame = frame;
  }

  frame(encoding: Encoding): Uint8Array {
    const there = this.#frames.get(encoding);
    if (there !== undefined) return there;
    const made = this.#frame(encoding);
    this.#frames.set(encoding, made);
    this.onEncoded?.(made.length);
    return made;
  }

  /** Of all encodings that were asked for. */
  get bytes(): number {
    return this.#frames.values().reduce((sum, { length }) => sum + length, 0);
  }
}

export const emptyMetadata: ObjectMeta = {
  ...{ name: "", generateName: "", namespace: "", selfLink: "", uid: "", resourceVersion: "" },
  generation: 0,
  creationTimestamp: { seconds: 0, nanoseconds: 0 },
  annotations: [],
};

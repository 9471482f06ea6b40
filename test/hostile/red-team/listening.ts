import { RawLink } from "../../support/frames/raw-link.ts";
import type { Ear } from "./sites/site.ts";
import { numberIn } from "./token.ts";
import type { Place } from "./world.ts";

/** A frame of the red team where somebody heard it. */
export interface Arrival {
  readonly number: number;
  readonly place: Place;
  readonly frame: Uint8Array;
}

/** All ears of a site. */
export class Listening implements Disposable {
  readonly #links: readonly { readonly place: Place; readonly link: RawLink }[];
  readonly #stack: DisposableStack;

  private constructor(links: readonly { readonly place: Place; readonly link: RawLink }[], stack: DisposableStack) {
    this.#links = links;
    this.#stack = stack;
  }

  static async start(ears: readonly Ear[]): Promise<Listening> {
    using stack = new DisposableStack();
    const links = [];
    for (const { place, namespace, ifname } of ears)
      links.push({ place, link: stack.use(await RawLink.open(namespace, ifname)) });
    return new Listening(links, stack.move());
  }

  /** What has come since the last time, but what nodes and pods said among themselves. */
  heard(): Arrival[] {
    return this.#links.flatMap(({ place, link }) =>
      link.received().flatMap((frame) => {
        const number = numberIn(frame);
        return number === undefined ? [] : [{ number, place, frame }];
      }),
    );
  }

  [Symbol.dispose](): void {
    this.#stack.dispose();
  }
}

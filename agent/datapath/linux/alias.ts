import type { Owner } from "../../../shared/cni/types.ts";
import { limits } from "../../../shared/limits.ts";

/** What the host's end of a pair says about itself, in its interface alias. */
export interface Alias {
  readonly owner: Owner;
  /** `true` where the address is a lease of our own allocator. */
  readonly ownLease: boolean;
}

const mark = "pipette";
const ownWord = "own";
const otherWord = "other";

/** IFALIASZ of the kernel, less its final zero. */
export const aliasBytes = 255;

/** None of the three names can hold a colon, and with their greatest lengths they fit. */
export function formatAlias({ owner, ownLease }: Alias): string {
  return [mark, ownLease ? ownWord : otherWord, owner.network, owner.sandboxId, owner.ifname].join(":");
}

/** The longest alias that `formatAlias` makes out of names within their limits. */
export const longestAlias =
  mark.length + otherWord.length + limits.networkNameChars + limits.containerIdChars + limits.ifnameBytes + 4;

/** `undefined` where the text is not one of ours. */
export function parseAlias(text: string): Alias | undefined {
  const [first, lease, network, sandboxId, ifname, ...rest] = text.split(":");
  if (first !== mark || rest.length > 0 || !network || !sandboxId || !ifname) return undefined;
  if (lease !== ownWord && lease !== otherWord) return undefined;
  return { owner: { network, sandboxId, ifname }, ownLease: lease === ownWord };
}

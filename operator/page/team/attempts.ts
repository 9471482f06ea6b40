import { Refusal } from "../../../shared/access/mod.ts";
import { firstOf, formatIp, type Ip } from "../../../shared/net/ip.ts";

/** Tokens in vain from one address within a minute: a person pastes the wrong one twice, a program hundreds. */
const maxInVain = 10;
const windowMs = 60_000;
/** Addresses that are remembered: more than that come from somebody who has many. */
const maxAddresses = 4096;
/** Who has one address of IPv6 has the whole network. */
const networkBits = 64;

/** Attempts to sign in that led nowhere, by where they came from: each is a question to the API server. */
export class Attempts {
  readonly #inVain = new Map<string, { count: number; readonly until: number }>();

  /** @param from absent: not known, and counted together @throws {Refusal} 429 */
  check(from: Ip | undefined): void {
    const known = this.#of(from);
    if (known !== undefined && known.count >= maxInVain)
      throw new Refusal(
        429,
        "too many tokens have come in vain from this address",
        Math.ceil((known.until - performance.now()) / 1000),
      );
  }

  failed(from: Ip | undefined): void {
    const known = this.#of(from);
    if (known !== undefined) known.count++;
    else {
      // The oldest goes: as if it had been a minute ago.
      if (this.#inVain.size >= maxAddresses) this.#inVain.delete(this.#inVain.keys().next().value ?? "");
      this.#inVain.set(keyOf(from), { count: 1, until: performance.now() + windowMs });
    }
  }

  #of(from: Ip | undefined): { count: number; readonly until: number } | undefined {
    const key = keyOf(from);
    const known = this.#inVain.get(key);
    if (known === undefined || known.until > performance.now()) return known;
    this.#inVain.delete(key);
    return undefined;
  }
}

const keyOf = (ip: Ip | undefined): string =>
  ip === undefined ? "" : formatIp(ip.family === 4 ? ip : firstOf({ ip, prefix: networkBits }));

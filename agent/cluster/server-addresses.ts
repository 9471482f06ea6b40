import { lookup } from "node:dns/promises";
import { retry } from "../../shared/async/backoff.ts";
import { LogOnChange } from "../../shared/async/log-on-change.ts";
import { CniError } from "../../shared/errors.ts";
import type { Logger } from "../../shared/log.ts";
import { type Ip, parseIp } from "../../shared/net/ip.ts";
import { registryRetry } from "./registry-health.ts";

/** `https://[fd00::1]:2379` has `fd00::1`. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).hostname.replace(/^\[|\]$/g, "") : "");

/** Those that need no look-up. */
export const literalAddresses = (urls: readonly string[]): readonly Ip[] =>
  urls.flatMap((url) => parseIp(hostOf(url)) ?? []);

/**
 * The addresses of the names too: asked for again until all are known, since a node may start before its name server can be reached.
 * @throws what the signal was aborted with
 */
export async function resolvedAddresses(
  urls: readonly string[],
  logger: Logger,
  signal: AbortSignal,
): Promise<readonly Ip[]> {
  const names = [...new Set(urls.map(hostOf))].filter((host) => host !== "" && parseIp(host) === undefined);
  if (names.length === 0) return literalAddresses(urls);
  const problem = new LogOnChange(logger);
  const message = "the registry's names cannot be resolved, and records of nodes are not held against them";
  const failed = (caught: unknown): void => problem.log(message, CniError.from(caught, "join").message);
  const look = async (): Promise<readonly Ip[]> => {
    const found = await Promise.all(names.map((name) => lookup(name, { all: true })));
    return found.flat().flatMap(({ address }) => parseIp(address) ?? []);
  };
  return [...literalAddresses(urls), ...(await retry(look, { ...registryRetry, signal, failed }))];
}

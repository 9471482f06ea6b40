import { type Asker, Refusal, statusOf, type User, type Wish, wishText } from "../access/mod.ts";
import type { Logger } from "../log.ts";
import { traceOf } from "../reason.ts";
import type { Exchange } from "./exchange.ts";

/** Who may ask for what. */
export interface Guard {
  /** @throws {Refusal} 401 for nobody who is known, 503 where that cannot be asked */
  userOf(asker: Asker): Promise<User>;
  /** @throws {Refusal} 503 where that cannot be asked */
  isAllowed(user: User, wish: Wish): Promise<boolean>;
}

/** Who asks. @throws {Refusal} for nobody who is known */
export async function identify(guard: Guard, exchange: Exchange): Promise<User> {
  const user = await guard.userOf(exchange);
  exchange.authenticated();
  return user;
}

/** @throws {Refusal} 403 where they may not */
export async function allow(guard: Guard, user: User, wish: Wish): Promise<void> {
  if (await guard.isAllowed(user, wish)) return;
  throw new Refusal(403, `"${user.name}" may not ${wishText(wish)}`);
}

/**
 * Answers why a request is not answered; what fails here is logged.
 * @param headers of every answer
 */
export function refuse(
  exchange: Exchange,
  caught: unknown,
  logger: Logger,
  headers: Readonly<Record<string, string>> = {},
): void {
  const refusal = caught instanceof Refusal ? caught : new Refusal(500, "this failed here");
  if (!(caught instanceof Refusal)) logger.error("a request has failed", { error: traceOf(caught) });
  const { retryAfterS: seconds } = refusal;
  const more: Record<string, string> = seconds === undefined ? {} : { "retry-after": String(seconds) };
  exchange.answer(refusal.status, "application/json", `${JSON.stringify(statusOf(refusal))}\n`, {
    ...headers,
    ...more,
  });
}

export const metricsPath = "/metrics";

/**
 * Answers a scrape, and nothing else.
 * @param guard absent: everybody may
 * @throws {Refusal}
 */
export async function answerScrape(
  exchange: Exchange,
  { text, contentType }: { text(): Promise<string>; readonly contentType: string },
  guard?: Guard,
): Promise<void> {
  const { path, method } = exchange;
  if (path !== metricsPath) throw new Refusal(404, "the server could not find the requested resource");
  if (method !== "GET") throw new Refusal(405, "this can only be read");
  if (guard !== undefined) await allow(guard, await identify(guard, exchange), { t: "path", verb: "get", path });
  exchange.answer(200, contentType, await text());
}

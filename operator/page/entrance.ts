import { timingSafeEqual } from "node:crypto";
import { Refusal } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import { type About, type Admission, type CommandAnswer, pageHeader } from "../../ui/stream/wire.ts";
import type { Hub } from "./hub.ts";

/** What a page may have done: commands of `pipette`, by name. */
export interface Commands {
  readonly names: readonly string[];
  /** @param input as it came @throws {Refusal} */
  run(input: unknown): Promise<CommandAnswer>;
}

/** Whom the page is shown to, and what they see. */
export interface Visitor {
  readonly hub: Hub;
  readonly commands: Commands;
  /** What the page tells of itself. @throws {Refusal} */
  about(): Promise<Omit<About, "version" | "commands">>;
  /** Aborted when they may look no longer; absent: as long as the server is there. */
  readonly ended?: AbortSignal;
}

/** Who may come in, and how. Every check throws a `Refusal`. */
export interface Entrance {
  /** Of every answer, beside the usual ones. */
  headers(exchange: Exchange): Readonly<Record<string, string>>;
  /** That the request is meant for this server: a name that somebody else has pointed at it is another host's. */
  checkHost(exchange: Exchange): void;
  /** That the request comes from the server's own page, or from no page. */
  checkOrigin(exchange: Exchange): void;
  /** @param token as it came @returns the cookie to be set, and what the page gets */
  admit(exchange: Exchange, token: unknown): Promise<{ readonly cookie: string; readonly admission: Admission }>;
  /** Whose request it is. */
  visitorOf(exchange: Exchange): Promise<Visitor>;
  /** Ends what `admit` has begun; absent: that cannot be. @returns the cookie to be set */
  dismiss?(exchange: Exchange): Promise<string>;
}

/**
 * That the request comes from a page of this very origin, or from no page: one of another site says so. To the page
 * itself links may lead from anywhere, because it tells nothing to who has no session.
 * @throws {Refusal} 403
 */
export function checkSameOrigin(exchange: Exchange, scheme: "http" | "https"): void {
  const origin = exchange.header("origin");
  if (origin !== undefined && origin !== `${scheme}://${exchange.host}`)
    throw new Refusal(403, "the request comes from another page");
  const site = exchange.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none")
    throw new Refusal(403, "the request comes from another page");
}

/** That no form and no link of another page has sent it: before there is a key. @throws {Refusal} 403 */
export function checkScript(exchange: Exchange): void {
  if (exchange.header(pageHeader) !== "1") throw new Refusal(403, `the header "${pageHeader}" is missing`);
}

/** @returns empty where there is none */
export function cookieOf(exchange: Exchange, name: string): string {
  const parts = (exchange.header("cookie") ?? "").split(";").map((part) => part.trim());
  return parts.find((part) => part.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
}

/** The key that only the page's own script sends; empty where there is none. */
export const keyOf = (exchange: Exchange): string => exchange.header(pageHeader) ?? "";

/** In a time that says nothing of where they differ. */
export function isSameText(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => new TextEncoder().encode(text)) as [Uint8Array, Uint8Array];
  return a.length === b.length && timingSafeEqual(a, b);
}

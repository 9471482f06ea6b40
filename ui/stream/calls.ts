import { reasonOf } from "../../shared/reason.ts";
import { type Admission, pageHeader } from "./wire.ts";

/** Requests to the page's own server. */

/** The server does not know this browser. */
export class NotOpen extends Error {
  /** It does once somebody signs in with a token. */
  readonly takesToken: boolean;

  constructor(why: string, takesToken: boolean) {
    super(why);
    this.takesToken = takesToken;
  }
}

/** @throws {Error} with the server's reason */
export async function mustBeWell(response: Response): Promise<void> {
  if (response.ok) return;
  const body = (await response.json().catch(() => ({}))) as { message?: string };
  const why = body.message ?? `the server answers ${response.status}`;
  const takesToken = response.headers.get("www-authenticate") !== null;
  throw response.status === 401 ? new NotOpen(why, takesToken) : new Error(why);
}

/** Where the browser keeps the page's key: for this port alone, unlike cookies, and beyond a reload. */
const keyName = "pipette-page-key";

/** What the server knows its own page by; empty before it was let in. */
export const ownHeaders = (): Record<string, string> => ({ [pageHeader]: localStorage.getItem(keyName) ?? "" });

/** Exchanges a token: the address's, or a person's. @throws {Error} as `mustBeWell` */
export async function enter(token: string): Promise<void> {
  const { key } = await post<Admission>("/api/v1/session", { token }, { [pageHeader]: "1" });
  localStorage.setItem(keyName, key);
}

/** Ends what a person's token has begun, here and at the server. @throws {Error} as `mustBeWell` */
export async function leave(): Promise<void> {
  try {
    await post("/api/v1/leave", {});
  } finally {
    localStorage.removeItem(keyName);
  }
}

/** @throws {Error} as `mustBeWell` */
export async function get<T>(path: string): Promise<T> {
  const response = await fetch(path, { headers: ownHeaders() });
  await mustBeWell(response);
  return (await response.json()) as T;
}

/** @throws {Error} as `mustBeWell` */
export async function post<T>(path: string, body: unknown, headers = ownHeaders()): Promise<T> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  await mustBeWell(response);
  return (await response.json()) as T;
}

export const whyNot = (caught: unknown): string => reasonOf(caught);

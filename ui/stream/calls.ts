import { reasonOf } from "../../shared/reason.ts";
import { pageHeader } from "./wire.ts";

/** Requests to the page's own server. */

/** The server does not know this browser. */
export class NotOpen extends Error {}

/** @throws {Error} with the server's reason */
export async function mustBeWell(response: Response): Promise<void> {
  if (response.ok) return;
  const body = (await response.json().catch(() => ({}))) as { message?: string };
  const why = body.message ?? `the server answers ${response.status}`;
  throw response.status === 401 ? new NotOpen(why) : new Error(why);
}

/** @throws {Error} as `mustBeWell` */
export async function get<T>(path: string): Promise<T> {
  const response = await fetch(path);
  await mustBeWell(response);
  return (await response.json()) as T;
}

/** @throws {Error} as `mustBeWell` */
export async function post<T>(path: string, body: unknown): Promise<T> {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", [pageHeader]: "1" },
    body: JSON.stringify(body),
  });
  await mustBeWell(response);
  return (await response.json()) as T;
}

export const whyNot = (caught: unknown): string => reasonOf(caught);

import type { OvsdbClient } from "../../agent/protocols/ovsdb/client.ts";
import { Transaction } from "../../agent/protocols/ovsdb/transaction.ts";
import type { Monitored, View } from "../../agent/protocols/ovsdb/view.ts";

/** Until the database has answered something: what it told before has been heard by then. @throws {OvsdbError} */
export async function roundTrip<M extends Monitored>(client: OvsdbClient<M>, timeoutMs?: number): Promise<void> {
  const question = new Transaction("hear from the database");
  question.comment("nothing");
  await client.transact(question, timeoutMs);
}

/** What `pick` finds in the client's view, asked at every change until it is not `undefined`. */
export async function waitUntil<M extends Monitored, T>(
  client: OvsdbClient<M>,
  pick: (view: View<M>) => T | undefined,
  { timeoutMs, action }: { readonly timeoutMs: number; readonly action: string },
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  const look = (): void => {
    const found = client.view.isCurrent ? pick(client.view) : undefined;
    if (found !== undefined) resolve(found);
  };
  using _ = client.onChanges(look);
  const timer = setTimeout(() => reject(new Error(`Cannot ${action} within ${timeoutMs} ms`)), timeoutMs);
  look();
  return await promise.finally(() => clearTimeout(timer));
}

import { expect, test } from "vitest";
import type { ConnectionEvent } from "../../../protocols/openflow/mod.ts";
import { cookieOf, learnedBit } from "../pipeline/cookie.ts";
import { isForeignChange } from "./connection.ts";

const update = (event: string, cookie = 0n) => ({ t: "flow-update", event, cookie }) as unknown as ConnectionEvent;

test.each<readonly [string, ConnectionEvent, boolean]>([
  ["a flow of this connection", update("own"), false],
  ["a flow that somebody has added", update("added", cookieOf(1, 1)), true],
  ["a flow that somebody has deleted", update("deleted", cookieOf(1, 1)), true],
  ["a flow that a packet has taught", update("added", learnedBit), false],
  ["more than can be told", update("paused"), true],
  ["a request of somebody else", { t: "request-forwarded" } as ConnectionEvent, true],
  ["what cannot be read", { t: "unreadable" } as ConnectionEvent, true],
  ["a refusal", { t: "refused" } as ConnectionEvent, false],
])("others may have changed the switch after %s: %#", (_what, event, wanted) => {
  expect(isForeignChange(event)).toBe(wanted);
});

import { describe, expect, test } from "vitest";
import { opening, ScriptedClient, wholeCall } from "../../../test/fakes/http2/scripted-client.ts";
import { limits } from "../../limits.ts";
import { concat, encodeReset, encodeSettings, encodeWindowUpdate } from "../../rpc/h2-frames.ts";

const idOf = (i: number): number => 1 + 2 * i;

describe("the calls of one connection", () => {
  test("so many calls are at work, the others begin one by one as those end; what was reset meanwhile never does", async () => {
    const ends: (() => void)[] = [];
    const client = new ScriptedClient(async (call) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      call.finish(0);
    });
    const calls = Array.from({ length: limits.callsAtWork + 3 }, (_, i) => wholeCall(idOf(i)));
    await client.send(concat([opening, ...calls]));
    const begun = (): number => client.events.filter((event) => event.startsWith("request")).length;
    expect(begun()).toBe(limits.callsAtWork);
    await client.send(encodeReset(idOf(limits.callsAtWork), 8));
    ends[0]?.();
    await client.read();
    expect(begun()).toBe(limits.callsAtWork + 1);
    expect(client.events.at(-1)).toBe(`request ${idOf(limits.callsAtWork + 1)}`);
    // What still waits when the peer goes is nobody's.
    for (const end of ends) end();
    client.connection.ended();
    await client.read();
    expect([begun(), client.memory.heldBytes]).toEqual([limits.callsAtWork + 1, 0]);
  });

  test("a call whose answer the peer does not take begins once it does", async () => {
    const client = new ScriptedClient();
    await client.send(concat([opening, encodeSettings([[4, 0]]), wholeCall(1), wholeCall(3)]));
    expect([client.events, client.connection.isHandling]).toEqual([["open 1", "open 3"], false]);
    await client.send(encodeWindowUpdate(3, 100));
    expect(client.events.slice(2)).toEqual(["request 3"]);
    await client.send(encodeSettings([[4, 100]]));
    expect(client.events.slice(3)).toEqual(["request 1"]);
    expect([...client.answers().values()].map(({ trailers }) => trailers[0])).toEqual([
      ["grpc-status", "0"],
      ["grpc-status", "0"],
    ]);
  });

  test("answers of which nothing is read keep the peer's further calls from beginning", async () => {
    const client = new ScriptedClient((call) => {
      call.send(new Uint8Array(1000));
      call.finish(0);
    });
    const calls = Array.from({ length: 2 * limits.callsAtWork }, (_, i) => wholeCall(idOf(i)));
    await client.send(concat([opening, ...calls]));
    // Of the connection's window 65 go out.
    const begun = (): number => client.events.filter((event) => event.startsWith("request")).length;
    expect(begun()).toBe(limits.callsAtWork + 65);
    expect(client.connection.isHandling).toBe(false);
    await client.send(encodeWindowUpdate(0, 1_000_000));
    expect(begun()).toBe(2 * limits.callsAtWork);
  });
});

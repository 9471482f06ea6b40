import { afterAll, beforeAll, expect, test } from "vitest";
import { guardTable, removeClearGuards } from "../../agent/datapath/ovs/linux/encryption/clear-guard.ts";
import { HeldInitiations } from "../../agent/datapath/ovs/linux/encryption/held-initiations.ts";
import { eventually } from "../support/eventually.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const port = 51_820;
const gateway = "gw0";
/** Lengths and types of WireGuard's messages (section 5.4 of its paper). */
const [initiation, response] = [
  { type: 1, length: 148 },
  { type: 2, length: 92 },
] as const;

/** A socket that sends to another one of the same address, and what that one has heard, as `type:length`. */
async function talkers(address: string, from: number) {
  const heard: string[] = [];
  const listener = await Bun.udpSocket({
    hostname: address,
    socket: { data: (_, bytes) => void heard.push(`${bytes[0]}:${bytes.length}`) },
  });
  const sender = await Bun.udpSocket({ hostname: address, port: from, socket: { error: () => undefined } });
  return {
    heard,
    says: ({ type, length }: { readonly type: number; readonly length: number }): void => {
      const bytes = new Uint8Array(length);
      bytes[0] = type;
      try {
        sender.send(bytes, listener.port, address);
      } catch (caught) {
        // What a rule drops on its way out is refused to who sends it.
        if (!/EPERM/.test(String(caught))) throw caught;
      }
    },
    [Symbol.dispose]: () => {
      listener.close();
      sender.close();
    },
  };
}

describeWith("handshake initiations that are held back", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  const initiations = new HeldInitiations(gateway, port);

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-hi-");
  });
  afterAll(() => sandbox[Symbol.asyncDispose]());

  const rules = (): Promise<string> => {
    const { family, name } = guardTable(gateway);
    return sandbox.node(`nft list table ${family} ${name}`);
  };

  test.each(["127.0.0.1", "::1"])("do not leave, and all else does, until they are let go: %s", async (address) => {
    using own = await talkers(address, port);
    using another = await talkers(address, port + 1);
    await initiations.hold();
    own.says(initiation);
    own.says({ ...initiation, length: 149 });
    own.says({ type: 4, length: 148 });
    own.says(response);
    another.says(initiation);
    await eventually(() => own.heard.includes("2:92") && another.heard.includes("1:148"), "what is not held");
    expect(own.heard).toEqual(["1:149", "4:148", "2:92"]);
    await initiations.release();
    own.says(initiation);
    await eventually(() => own.heard.includes("1:148"), "what was held");
  });

  test("leave after some seconds, also where nobody lets them go", async () => {
    const left = async (): Promise<number> => {
      const [, seconds = "0", ms = "0"] = /expires (?:(\d+)s)?(?:(\d+)ms)?/.exec(await rules()) ?? [];
      return Number(seconds) + Number(ms) / 1_000;
    };
    using own = await talkers("127.0.0.1", port);
    await initiations.hold();
    const seconds = await left();
    expect(seconds).toBeLessThanOrEqual(5);
    await Bun.sleep(3_000);
    expect(await left()).toBeLessThan(seconds - 2);
    // Once more: from now on.
    await initiations.hold();
    expect(await left()).toBeGreaterThan(2);
    await eventually(() => {
      own.says(initiation);
      return own.heard.length > 0;
    }, "what was held");
    expect(await left()).toBe(0);
  });

  test("are held by one rule of the guard's table, which goes with that", async () => {
    await initiations.hold();
    await initiations.hold();
    expect((await rules()).match(/@held-ports/g)).toHaveLength(1);
    expect(await removeClearGuards()).toBe(true);
    await expect(rules()).rejects.toThrow(/No such file/);
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { installPacketRules, missingPacketRules } from "../../agent/datapath/linux/packet-rules.ts";
import { Kernel } from "../../agent/protocols/netlink/mod.ts";
import { nextTurn } from "../../shared/async/next-turn.ts";
import { parseCidr } from "../../shared/net/ip.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";

const network = {
  name: "pods",
  subnets: [parseCidr("10.1.2.0/24")!, parseCidr("fd00:1::/64")!],
  bridge: "br-pods",
  hairpin: true,
  masquerade: true,
};

describeWith("packet rules that are loaded anew", ["root", "nft"], () => {
  let sandbox: NetworkSandbox;
  let kernel: Kernel;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-pr-");
    kernel = new Kernel();
  });
  afterAll(async () => {
    kernel[Symbol.dispose]();
    await sandbox[Symbol.asyncDispose]();
  });

  test("are at no moment said to be missing", async () => {
    await installPacketRules([network]);
    const seen = new Map<string, number>();
    for (let load = 0; load < 40; load++) {
      let loading = true;
      const loaded = installPacketRules([network]).finally(() => {
        loading = false;
      });
      while (loading) {
        for (const problem of await missingPacketRules(kernel, [network]))
          seen.set(problem, (seen.get(problem) ?? 0) + 1);
        await nextTurn();
      }
      await loaded;
    }
    expect(Object.fromEntries(seen)).toEqual({});
  });
});

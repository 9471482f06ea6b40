import { expect, test } from "vitest";
import { createLogger } from "../../../shared/log.ts";
import { describeWith } from "../../../test/support/requires.ts";
import { scratchDir } from "../../../test/support/scratch-dir.ts";
import { crowdedSwitch, FlowCache, knownNeighbours } from "./switch-control.ts";

/** ovs-vswitchd beside a database: what it answers by command, and what it was asked. */
function daemon(answers: Readonly<Record<string, string>>) {
  const scratch = scratchDir();
  const asked: string[] = [];
  const listener = Bun.listen({
    unix: `${scratch.path}/ovs-vswitchd.7.ctl`,
    socket: {
      data: (socket, chunk) => {
        const { id, method, params } = JSON.parse(new TextDecoder().decode(chunk));
        asked.push([method, ...params].join(" "));
        socket.write(JSON.stringify({ id, result: answers[method] ?? "", error: null }));
      },
    },
  });
  return {
    asked,
    database: `unix:${scratch.path}/db.sock`,
    [Symbol.dispose]: () => {
      listener.stop(true);
      scratch[Symbol.dispose]();
    },
  };
}
const answers = (connections: number, most = 100) => ({
  "dpctl/ct-get-nconns": `${connections}\n`,
  "dpctl/ct-get-maxconns": `${most}\n`,
});

describeWith("a switch in user space", ["linux"], () => {
  test.each([
    [79, []],
    [80, [expect.stringMatching(/^connection tracking of the switch .*ct-set-maxconns.* holds 80 of 100 connections/)]],
  ])("with %i of 100 connections", async (connections, told) => {
    using switchd = daemon(answers(connections));
    expect(await crowdedSwitch("netdev", switchd.database)).toEqual(told);
    expect(switchd.asked).toEqual(["dpctl/ct-get-nconns netdev@ovs-netdev", "dpctl/ct-get-maxconns netdev@ovs-netdev"]);
  });

  test("knows neighbours, of which it says whom it no longer uses", async () => {
    using switchd = daemon({
      "tnl/neigh/show": `IP                                            MAC                 Bridge
==========================================================================
192.0.2.2                                     02:00:00:00:00:02   br-phy
192.0.2.3                                     02:00:00:00:00:03   br-phy STALE
2001:db8::2                                   02:00:00:00:00:02   br-phy
`,
    });
    expect(await knownNeighbours(switchd.database)).toEqual(new Set(["192.0.2.2", "2001:db8::2"]));
  });

  test("forgets its cache at once, and a second time, and not again", async () => {
    using switchd = daemon({});
    const lines: string[] = [];
    await using cache = new FlowCache(
      switchd.database,
      createLogger("info", (line) => lines.push(line)),
    );
    cache.purge();
    const once = ["revalidator/purge", "dpctl/del-flows netdev@ovs-netdev"];
    await expect.poll(() => switchd.asked).toEqual([...once, ...once]);
    // A third one would come a second after the second.
    await Bun.sleep(1_500);
    expect([switchd.asked.length, lines]).toEqual([4, []]);
  });
});

test("a switch in the kernel is not asked, nor is one that is elsewhere", async () => {
  using switchd = daemon(answers(100));
  expect(await crowdedSwitch("system", switchd.database)).toEqual([]);
  expect(switchd.asked).toEqual([]);
  const remote = "tcp:127.0.0.1:1";
  expect(await crowdedSwitch("netdev", remote)).toEqual([]);
  expect(await knownNeighbours(remote)).toEqual(new Set());
  const lines: string[] = [];
  await using cache = new FlowCache(
    remote,
    createLogger("info", (line) => lines.push(line)),
  );
  cache.purge();
  await Bun.sleep(100);
  expect(lines).toEqual([]);
});

import { expect, test } from "vitest";
import { startedPods } from "../../agent/datapath/hns/windows-host/mod.ts";
import { startContainer } from "./node-state.ts";
import { HostFixture } from "./set-up-fixture.ts";

test("pods whose containers have started are found in their compartments, and have the MTU then", async () => {
  using host = new HostFixture();
  const { state } = host.node;
  expect(await startedPods(host.run, ["web-1", "db-2"], 1400)).toEqual(new Set());
  startContainer(state, "web-1");
  expect(await startedPods(host.run, ["web-1", "db-2"], 1400)).toEqual(new Set(["web-1"]));
  const mtus = () => state.interfaces.map((entry) => [entry["InterfaceAlias"], entry["NlMtu"]]);
  expect(mtus()).toEqual([
    [undefined, 1500],
    [undefined, 1500],
    ["vEthernet (web-1)", 1400],
  ]);
  const acts = host.node.done.length;
  startContainer(state, "db-2");
  expect(await startedPods(host.run, ["db-2", "web-1"], 1400)).toEqual(new Set(["db-2", "web-1"]));
  expect(host.node.done.slice(acts)).toEqual(["Set-NetIPInterface"]);
});

test("a pod whose adapter does not take the MTU has not started, and the others have", async () => {
  using host = new HostFixture();
  for (const name of ["web-1", "db-2"]) startContainer(host.node.state, name);
  await startedPods(host.run, ["web-1"], 1400);
  host.node.lying.add("Set-NetIPInterface");
  expect(await startedPods(host.run, ["web-1", "db-2"], 1400)).toEqual(new Set(["web-1"]));
});

test("a hundred pods at once are one look, in commands that Windows takes as one line each", async () => {
  using host = new HostFixture();
  const names = Array.from({ length: 100 }, (_, i) => `kube-sys-${String(i).padStart(6, "a")}`);
  for (const name of names) startContainer(host.node.state, name);
  expect(await startedPods(host.run, names, 1400)).toEqual(new Set(names));
  expect(Math.ceil((host.node.longestScript * 2) / 3) * 4).toBeLessThan(32_000);
});

test("twenty adapters that refuse the MTU hold up none of those behind them, be it that the whole command fails", async () => {
  using host = new HostFixture();
  const [bad, good] = ["bad", "good"].map((what) => Array.from({ length: 25 }, (_, i) => `${what}-${i}`));
  const names = [...bad!, ...good!];
  for (const name of names) startContainer(host.node.state, name);
  for (const name of bad!) host.node.refusing.add(`vEthernet (${name})`);
  expect(await startedPods(host.run, names, 1400)).toEqual(new Set(good));
  // Those that have it already need nothing, and count as none of those that need it.
  expect(await startedPods(host.run, [...good!, ...names], 1400)).toEqual(new Set(good));
  host.node.refusing.clear();
  let commands = 0;
  const failing = {
    ...host.run,
    run: (...args: Parameters<typeof host.run.run>) => {
      if (++commands === 2) throw new Error("PowerShell hangs");
      return host.run.run(...args);
    },
  };
  expect((await startedPods(failing, names, 1400)).size).toBe(30);
});

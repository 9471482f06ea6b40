import { existsSync } from "node:fs";
import { beforeEach, expect, test } from "vitest";
import { describeWine } from "../windows/wine/describe-wine.ts";
import { executables } from "../windows/wine/prefix.ts";
import type { Ended, Program } from "../windows/wine/program.ts";
import { Killed, NodeInMemory } from "./node-in-memory.ts";
import { deleteHnsNetwork, freshNode, makeHnsNetwork } from "./node-state.ts";

const config = `dataPath: hns
logLevel: debug
networks:
  - name: pods
    subnets: [10.10.1.0/24]
    bridge: br-int
    mtu: 1450
    hns:
      nodeAddress: 192.168.1.5
      ovsExtension: true
      peers: [{ podSubnet: 10.10.2.0/24, gateway: 10.10.2.1 }]
`;
const configFile = "C:\\ProgramData\\pipette\\agent.yaml";
/** The agent starts PowerShell a dozen times, each time a process of Wine. */
const patienceMs = 120_000;
const records = "C:\\ProgramData\\pipette\\windows-host";

describeWine("an agent on a Windows node", (wine) => {
  let node: NodeInMemory;
  const agent = (): Program =>
    wine.prefix.start(`${executables}/pipette.exe`, {
      args: ["agent", "--config", configFile],
      timeoutMs: 2 * patienceMs,
    });
  const cleanUp = (...more: string[]): Promise<Ended> =>
    wine.prefix.run(`${executables}/pipette.exe`, {
      args: ["agent", "--cleanup", "--config", configFile, ...more],
      timeoutMs: patienceMs,
    });
  const snapshot = (): unknown => structuredClone(node.state);

  /** Windows makes a switch with an HNS network and takes it away with it. */
  function follow(): void {
    const { networks } = wine.stubs.hns.store;
    const names = [...networks.values()].map((network) => String(network["Name"]));
    const switches = node.state.switches.map((one) => String(one["Name"]));
    for (const name of names) if (!switches.includes(name)) makeHnsNetwork(node.state, name, true);
    for (const name of switches) if (!names.includes(name)) deleteHnsNetwork(node.state, name, true);
  }

  beforeEach(() => {
    node = new NodeInMemory(freshNode());
    wine.stubs.hns.reset();
    wine.stubs.hns.store.adapters.add("Ethernet0");
    wine.prefix.write(configFile, config);
    wine.stubs.commands.answerWith = async ({ script }) => {
      follow();
      try {
        return { status: 0, stdout: (await node.execute(script)).stdout };
      } catch (caught) {
        if (caught instanceof Killed) return undefined;
        throw caught;
      }
    };
  });

  test(
    "sets it up, finds it right the next time, and leaves nothing after the clean-up",
    async () => {
      const fresh = snapshot();
      await using first = agent();
      await first.saying('"message":"ready"', patienceMs);
      follow();
      const up = snapshot();
      expect(node.state.adapters.map((entry) => entry["Name"])).toEqual(["Ethernet0", "br-int"]);
      expect(node.state.nats).toEqual([{ Name: "pipette-nat", InternalIPInterfaceAddressPrefix: "10.10.1.0/24" }]);
      expect(node.state.interfaces.at(-1)).toMatchObject({ Forwarding: "Enabled", NlMtu: 1450 });
      const acts = node.done.length;
      expect(acts).toBe(9);

      const refused = await cleanUp();
      expect([refused.status, refused.stdout]).toEqual([1, ""]);
      expect(refused.stderr).toContain(
        'Cannot start the clean-up: data directory "C:\\ProgramData\\pipette" is held by',
      );
      await first.stop();
      await using second = agent();
      await second.saying('"message":"ready"', patienceMs);
      await second.stop();
      expect([node.done.length, snapshot()]).toEqual([acts, up]);

      const cleaned = await cleanUp();
      expect(cleaned).toMatchObject({ status: 0, stderr: "" });
      expect(cleaned.stdout).toMatch(/^hns network +HNS network "pipette" +undone$/m);
      follow();
      expect(snapshot()).toEqual(fresh);
      expect(wine.stubs.hns.store.networks.size).toBe(0);
      expect(existsSync(wine.prefix.unixPath(records))).toBe(false);
      expect(await cleanUp()).toMatchObject({ status: 0, stdout: "nothing on record: there is nothing to clean up\n" });
    },
    2 * patienceMs,
  );

  test(
    "that is killed in the middle goes on at its next start, and a clean-up in its place leaves nothing",
    async () => {
      const fresh = snapshot();
      for (const acts of [1, 5]) {
        const killed = agent();
        node.afterwards = () => {
          if (node.done.length === acts) killed.kill("SIGKILL");
        };
        await killed.ended;
        node.afterwards = () => undefined;
        expect(node.done.length).toBe(acts);
        if (acts === 1) {
          await using next = agent();
          await next.saying('"message":"ready"', patienceMs);
          expect(node.done).toHaveLength(9);
          await next.stop();
        }
        expect(await cleanUp()).toMatchObject({ status: 0, stderr: "" });
        follow();
        expect(snapshot()).toEqual(fresh);
        node.done.length = 0;
      }
    },
    2 * patienceMs,
  );

  test(
    "whose PowerShell does nothing and ends with 0 serves no pod, and says why",
    async () => {
      wine.stubs.commands.answerWith = () => ({ status: 0 });
      await using silent = agent();
      await silent.saying(
        "Cannot find the node's adapter: PowerShell answered nothing, wanted a whole answer",
        patienceMs,
      );
      await silent.stop();
      expect(wine.stubs.hns.store.networks.size).toBe(0);
      expect(`${silent.stdout}${silent.stderr}`).not.toContain('"message":"ready"');
    },
    2 * patienceMs,
  );

  test(
    "whose HNS fails keeps what is left on record, and says so",
    async () => {
      const fresh = snapshot();
      await using first = agent();
      await first.saying('"message":"ready"', patienceMs);
      await first.stop();
      using _fault = wine.stubs.hns.fault({ call: "HcnDeleteNetwork", hresult: 0x80070005 });
      const failed = await cleanUp("--json");
      expect(failed.status).toBe(1);
      expect(failed.stderr).toMatch(/80070005/i);
      expect(node.state.nats).toEqual([]);
      expect(existsSync(wine.prefix.unixPath(records))).toBe(true);
      _fault[Symbol.dispose]();
      expect(await cleanUp()).toMatchObject({ status: 0, stderr: "" });
      follow();
      expect(snapshot()).toEqual(fresh);
    },
    2 * patienceMs,
  );
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { formatIdentity } from "../../agent/datapath/ovs/database/port-identity.ts";
import { openDatabase, type SwitchDatabase } from "../../agent/datapath/ovs/database/switch-database.ts";
import type { PodPort } from "../../agent/datapath/ovs/overlay-node.ts";
import { PodPorts } from "../../agent/datapath/ovs/pod-ports.ts";
import type { FlowSet } from "../../agent/datapath/ovs/program/flow-set.ts";
import { SwitchPresence } from "../../agent/datapath/ovs/switch-presence.ts";
import { insertBridge, insertPort, Transaction, transactAndApply } from "../../agent/protocols/ovsdb/mod.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { createLogger } from "../../shared/log.ts";
import { parseCidr, parseIp } from "../../shared/net/ip.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { OpenVswitch } from "./open-vswitch.ts";

const bridge = "br-int";
const context = {
  mode: "encap",
  gateway: { ofport: 32_769, mac: "0e:00:0a:0a:01:01", addresses: [parseIp("10.10.1.1")!] },
  nodeAddresses: [],
  podSubnets: [parseCidr("10.10.1.0/24")!],
  multitenant: false,
} as const;

/** Open vSwitch makes its device itself. */
const pod = (number: number): PodPort => ({
  owner: { network: "pods", sandboxId: `sandbox${number}`, ifname: "eth0" },
  port: `pod${number}`,
  type: "internal",
  mac: `02:00:00:00:00:0${number}`,
  ips: [parseIp(`10.10.1.${number}`)!],
  netns: "",
  ownLease: true,
  vnid: 0,
});

/** A program that refuses some, and has what it took. */
class ScriptedProgram {
  readonly parts = new Map<string, FlowSet>();
  readonly refused = new Set<string>();
  /** What the next calls wait for. */
  held: Promise<void> | undefined;

  readonly set = async (changes: ReadonlyMap<string, FlowSet | undefined>): Promise<void> => {
    await this.held;
    const refused = [...changes.keys()].find((key) => this.refused.has(key));
    if (refused !== undefined) throw new CniError(CniCode.interfaceFailure, `Cannot take "${refused}": scripted`);
    for (const [key, part] of changes) {
      if (part === undefined) this.parts.delete(key);
      else this.parts.set(key, part);
    }
  };
}

const keyOf = ({ owner }: PodPort): string => `pod/${ownerKey(owner)}`;

describeWith("pods' ports and what the program is told of them", ["root", "openvswitch"], () => {
  let sandbox: NetworkSandbox;
  let ovs: OpenVswitch;
  let db: SwitchDatabase;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-podports-");
    ovs = await OpenVswitch.start();
    db = openDatabase(`unix:${ovs.socket}`);
    await db.ready();
    const transaction = new Transaction("make the bridge");
    insertBridge(transaction, { name: bridge, bridge: { datapath_type: "netdev" } });
    await transactAndApply(db, transaction, 30_000);
  });
  afterAll(async () => {
    db?.[Symbol.dispose]();
    await ovs?.[Symbol.asyncDispose]();
    await sandbox?.[Symbol.asyncDispose]();
  });

  function following() {
    const ports = new PodPorts({
      db,
      bridge,
      presence: new SwitchPresence(),
      logger: createLogger("error", () => undefined),
    });
    const program = new ScriptedProgram();
    ports.follow(context, program.set);
    const told = (one: PodPort): boolean => program.parts.has(keyOf(one));
    return { ports, program, told };
  }

  test("a pod that the switch refuses is told of again, and costs the others nothing", async () => {
    const { ports, program, told } = following();
    const [good, bad] = [pod(2), pod(3)];
    await ports.connect(bad, "now");
    await ports.connect(good, "now");
    program.parts.clear();
    program.refused.add(keyOf(bad));
    // As where the node's own ports have other numbers than before: all of it is told again.
    ports.follow(context, program.set);
    await expect(ports.settle()).rejects.toThrow("scripted");
    expect([told(good), told(bad)]).toEqual([true, false]);
    await expect(ports.connect(bad, "now")).rejects.toThrow("scripted");
    program.refused.clear();
    await ports.settle();
    expect([told(good), told(bad)]).toEqual([true, true]);
    for (const one of [good, bad]) expect(await ports.disconnect(one.owner)).toBe(true);
    expect(program.parts.size).toBe(0);
  });

  test("a pod that leaves before all is told again takes its flows along", async () => {
    const { ports, program, told } = following();
    const one = pod(4);
    await ports.connect(one, "now");
    expect(told(one)).toBe(true);
    ports.follow(context, program.set);
    await ports.disconnect(one.owner);
    expect(told(one)).toBe(false);
  });

  test("a port that the database makes when nobody waits for it any more is removed, and no other", async () => {
    const { ports, program } = following();
    await ports.connect(pod(5), "now");
    // As after a freeze: the ADD gave its transaction up, its DEL found nothing, and then the database carried it out.
    const late = [pod(6), { ...pod(5), port: "pod5-before" }];
    const transaction = new Transaction("carry out what was given up");
    for (const port of late)
      insertPort(transaction, bridge, {
        name: port.port,
        interface: { type: "internal" },
        port: { external_ids: formatIdentity(port) },
      });
    await transactAndApply(db, transaction, 30_000);
    const names = (): readonly string[] =>
      ports
        .list()
        .map(({ port }) => port)
        .sort();
    expect(names()).toEqual(["pod5", "pod5-before", "pod6"]);
    expect(["pod5", "pod5-before", "pod6", bridge].map((name) => ports.isHandled(name))).toEqual([
      ...[false, false, false],
      true,
    ]);
    await ports.settle();
    await expect.poll(names).toEqual(["pod5"]);
    expect([...program.parts.keys()]).toContain(keyOf(pod(5)));
    await ports.disconnect(pod(5).owner);
    await expect.poll(names).toEqual([]);
  });

  test("a port that is made again while the switch is slow to let go of its flows stays", async () => {
    const { ports, program, told } = following();
    const one = pod(5);
    await ports.connect(one, "now");
    const gate = Promise.withResolvers<void>();
    program.held = gate.promise;
    const leaving = ports.disconnect(one.owner);
    const coming = ports.connect(one, "now");
    gate.resolve();
    await Promise.all([leaving, coming]);
    expect(ports.list().map(({ port }) => port)).toContain(one.port);
    expect(told(one)).toBe(true);
    program.held = undefined;
    await ports.disconnect(one.owner);
  });
});

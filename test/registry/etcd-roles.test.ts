import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { EtcdClient, get, parseEndpoints, put, remove, textOf } from "../../agent/protocols/etcd/mod.ts";
import { parseCidr } from "../../shared/net/ip.ts";
import { Certificates } from "../support/certificates.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually, machine } from "./etcd-machines.ts";

const base = "/pipette/v1";
const script = new URL("../../conf/etcd-roles.sh", import.meta.url).pathname;
/** As the sample writes them, with a person's spaces. */
const networks = '{ "networks": [{ "cidr": "10.9.0.0/16", "hostBits": 8 }] }';

describeWith("etcd with the users and roles of the sample", ["etcd", "etcdctl", "openssl"], () => {
  const stack = new AsyncDisposableStack();
  const certificates = new Certificates(stack.use(scratchDir()).path);
  let etcd: EtcdCluster;
  let nodes: readonly [EtcdNodeRegistry, EtcdNodeRegistry];
  let operator: EtcdNodeRegistry;
  let client: EtcdClient;

  const files = (user: string) => ({ ca: certificates.file("ca.pem"), ...certificates.pair(user) });
  const open = (user: string): EtcdNodeRegistry => {
    const own = [{ cidr: parseCidr("10.9.0.0/16")!, hostBits: 8 }];
    return stack.use(createEtcdRegistry({ endpoints: etcd.endpoints, networks: own, ...files(user) }));
  };
  const roles = async (...words: readonly string[]): Promise<void> => {
    const { ca, cert, key } = files("root");
    const env = { ETCDCTL_ENDPOINTS: etcd.endpoints.join(), ETCDCTL_CACERT: ca, ETCDCTL_CERT: cert, ETCDCTL_KEY: key };
    await execa(script, words, { env });
  };
  /** What etcd says to a node that puts or deletes a key. */
  const asNode = (run: Parameters<EtcdClient["txn"]>[0]["run"]): Promise<unknown> =>
    client.txn({ run }).catch((caught: unknown) => caught);
  const denied = expect.objectContaining({ trouble: "denied" });

  beforeAll(async () => {
    await certificates.make("ca");
    await certificates.make("server", "ca", "127.0.0.1");
    for (const user of ["root", "pipette-operator", "n1", "machine-2"]) await certificates.make(user, "ca");
    etcd = stack.use(await EtcdCluster.start({ tls: files("server") }));
    await roles("cluster", "pipette-operator", networks);
    await roles("node", "n1");
    await roles("node", "n2", "machine-2");
    await roles("enable");
    // Once more, as for one more node or after half of it.
    await roles("cluster", "pipette-operator", "something else, which changes nothing");
    await roles("node", "n1");
    nodes = [open("n1"), open("machine-2")];
    operator = open("pipette-operator");
    client = stack.use(new EtcdClient(parseEndpoints(etcd.endpoints, files("n1"))));
  });
  afterAll(() => stack.disposeAsync());

  test("a node joins, says that it lives, moves, follows the others, and gives new projects their VNIDs", async () => {
    const [one, two] = await Promise.all([nodes[0].register(machine(1)), nodes[1].register(machine(2))]);
    await using _ = nodes[0].keepAlive(one);
    await eventually("its sign of life", async () => (await nodes[1].list()).some(({ state }) => state === "ready"));
    const moved = await nodes[0].register({ ...machine(1), mac: "02:00:00:00:00:01" });
    expect(moved).toEqual({ ...one, mac: "02:00:00:00:00:01" });
    await using followed = nodes[1].follow();
    const isFollowed = (): boolean => followed.current?.size === 2 && followed.current.get("n1")?.mac === moved.mac;
    await eventually("the others", isFollowed);
    expect(await nodes[1].tenants.vnidOf("red")).toBe(10);
    expect(await nodes[0].tenants.vnidOf("default")).toBe(0);
    await using told = nodes[0].tenants.follow();
    await using confirmed = nodes[0].tenants.followConfirmed!();
    await eventually("the projects", () => told.current?.get("red") === 10 && confirmed.current?.size === 0);
    expect(two.subnets).toHaveLength(1);
    await eventually("its sign of life", async () => (await nodes[1].list()).some(({ name }) => name === "n1"));
  });

  test.each([
    ["another node's record", [put(`${base}/nodes/n2`, "{}")]],
    ["the record of a node that is to come", [put(`${base}/nodes/n3`, "{}")]],
    ["a record that begins as its own", [put(`${base}/nodes/n1-more`, "{}")]],
    ["the end of another's", [remove(`${base}/nodes/n2`)]],
    ["another's sign of life", [put(`${base}/alive/n2`, "uid-2")]],
    ["the cluster networks", [put(`${base}/config`, "{}")]],
    ["a confirmation", [put(`${base}/confirmed-vnids/red`, "10")]],
    ["what is not Pipette's", [put("/other", "")]],
  ] as const)("it may not write %s", async (_what, run) => {
    expect(await asNode(run)).toEqual(denied);
  });

  test("nor do what people do, whose word counts; they can", async () => {
    for (const to of ["global", "own", { join: "default" }] as const)
      await expect(nodes[0].tenants.assign("red", to)).rejects.toThrow("it refuses this client");
    await expect(nodes[0].tenants.confirm!("red", 10)).rejects.toThrow("it refuses this client");
    await expect(nodes[0].release("n2")).rejects.toThrow("it refuses this client");
    // A number it can overwrite: that nobody has confirmed it is what keeps the projects apart.
    expect(await asNode([put(`${base}/vnids/red`, "0")])).toMatchObject({ succeeded: true });
    await expect(operator.tenants.confirm!("red", 10)).rejects.toThrow("it has 0");
    const own = await operator.tenants.assign("red", "own");
    await operator.tenants.confirm!("red", own);
    const { found } = await client.txn({ run: [get(`${base}/confirmed-vnids/red`)] });
    expect(found[0]?.map(textOf)).toEqual([String(own)]);
    expect(await operator.repair()).toEqual([]);
    expect(await operator.release("n2")).toBe(true);
    await roles("leave", "n2", "machine-2");
    await expect(nodes[1].list()).rejects.toMatchObject({ code: 11 });
  });

  test("a node whose rights are no more than it needs is not warned of, and everybody else is", async () => {
    expect(await nodes[0].excessRights?.()).toEqual([]);
    const all = [
      expect.stringContaining("confirmed"),
      expect.stringContaining("records"),
      expect.stringContaining("networks"),
    ];
    expect(await operator.excessRights?.()).toEqual(all);
    await using open = await EtcdCluster.start();
    await using registry = createEtcdRegistry({ endpoints: open.endpoints });
    expect(await registry.excessRights?.()).toEqual(all);
    await registry.register(machine(1));
    expect((await registry.list()).map(({ name }) => name)).toEqual(["n1"]);
    await open.signal(0, "SIGKILL");
    expect(await registry.excessRights?.()).toEqual([]);
  });
});

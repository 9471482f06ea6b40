import { afterEach, beforeEach, expect, test } from "vitest";
import { createEtcdRegistry, type EtcdNodeRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { Certificates } from "../support/certificates.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { EtcdCluster } from "./etcd-cluster.ts";
import { eventually, machine } from "./etcd-machines.ts";

describeWith("etcd with certificates", ["etcd", "openssl"], () => {
  let scratch: ReturnType<typeof scratchDir>;
  let certificates: Certificates;
  let etcd: EtcdCluster | undefined;
  let registries: EtcdNodeRegistry[];
  beforeEach(async () => {
    registries = [];
    scratch = scratchDir();
    certificates = new Certificates(scratch.path);
    await certificate("ca");
    await certificate("foreign");
  });
  afterEach(async () => {
    for (const each of registries) await each[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
    scratch[Symbol.dispose]();
  });

  const file = (name: string): string => certificates.file(name);
  const pair = (name: string) => certificates.pair(name);
  const certificate = (...of: Parameters<Certificates["make"]>): Promise<void> => certificates.make(...of);

  async function start(address: string): Promise<void> {
    await certificate("server", "ca", address);
    etcd = await EtcdCluster.start({ tls: { ca: file("ca.pem"), ...pair("server") } });
  }

  function open(files: { readonly ca?: string; readonly cert?: string; readonly key?: string }): EtcdNodeRegistry {
    const registry = createEtcdRegistry({ endpoints: etcd?.endpoints ?? [], callMs: 2_000, ...files });
    registries.push(registry);
    return registry;
  }

  test("a member is reached at its address with a certificate that it knows, and with none but that", async () => {
    await start("127.0.0.1");
    await certificate("node", "ca");
    await certificate("stranger", "foreign");
    const ca = file("ca.pem");
    const registry = open({ ca, ...pair("node") });
    const followed = registry.follow();
    const node = await registry.register(machine(1));
    await eventually("it is followed", () => followed.current?.has("n1") === true);
    expect(await registry.list()).toMatchObject([{ ...node, state: "lost" }]);

    const refused = async (files: Parameters<typeof open>[0], reason: RegExp): Promise<void> => {
      await expect(open(files).list()).rejects.toMatchObject({ code: 11, message: expect.stringMatching(reason) });
    };
    await refused({ ca }, /certificate/i);
    await refused({ ca, ...pair("stranger") }, /certificate/i);
    await refused({ ca: file("foreign.pem"), ...pair("node") }, /certificate|signature/i);
  });

  test("a member that another authority vouches for is not believed, whatever the environment says of it", async () => {
    await start("127.0.0.1");
    await certificate("node", "ca");
    const name = "NODE_TLS_REJECT_UNAUTHORIZED";
    const before = process.env[name];
    process.env[name] = "0";
    try {
      await expect(open({ ca: file("foreign.pem"), ...pair("node") }).list()).rejects.toThrow(/certificate|signature/i);
    } finally {
      if (before === undefined) delete process.env[name];
      else process.env[name] = before;
    }
  });

  test("a member whose certificate is for another address is not believed", async () => {
    await start("127.0.0.2");
    await certificate("node", "ca");
    await expect(open({ ca: file("ca.pem"), ...pair("node") }).list()).rejects.toThrow(/127\.0\.0\.1/);
  });

  test("files that are missing or do not belong together are named at once", async () => {
    const endpoints = ["https://127.0.0.1:1"];
    const make = (files: object) => () => createEtcdRegistry({ endpoints, ...files });
    expect(make({ ca: file("none.pem") })).toThrow(/"ca" cannot be read/);
    expect(make({ cert: file("ca.pem") })).toThrow('one of "cert" and "key" is missing');
    expect(make({ cert: file("ca.pem"), key: file("foreign.pem") })).toThrow("the certificates cannot be used");
    expect(make({ endpoints: ["http://127.0.0.1:1"], ca: file("ca.pem") })).toThrow("wanted https");
    for (const endpoint of ["127.0.0.1:2379", "ftp://h:1", "http://u@h:1", "http://h:1/x", "http://h:1?x"])
      expect(make({ endpoints: [endpoint] })).toThrow("is no endpoint, wanted http://HOST:PORT");
    expect(make({ endpoints: [] })).toThrow("the list of endpoints is empty");
    expect(make({ prefix: "pipette" })).toThrow("the prefix is");
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { addressesInNamespaces } from "../../agent/protocols/netlink/mod.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { openDataPath, ownerOf, requestFor } from "./bridge-fixture.ts";

describeWith("addresses in the sandboxes", ["root"], () => {
  let sandbox: NetworkSandbox;

  beforeAll(async () => {
    sandbox = await NetworkSandbox.enter("pt-na-");
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());

  test("are found in every named namespace, whoever wired it", async () => {
    const pod = await sandbox.addPod();
    await sandbox.pod(pod, "ip link add pt0 type veth peer name pt1");
    for (const address of ["10.73.0.9/24", "fd73::9/64"]) await sandbox.pod(pod, `ip address add ${address} dev pt0`);
    const found = await addressesInNamespaces();
    expect([found.has("10.73.0.9"), found.has("fd73::9"), found.has("10.73.0.10")]).toEqual([true, true, false]);
  });

  test("are read from outside for an interface of ours, those of its network alone", async () => {
    const pod = await sandbox.addPod();
    await using dataPath = openDataPath();
    await dataPath.start();
    const { ips } = await dataPath.attach(requestFor("read", pod, 10));
    await sandbox.pod(pod, "ip address add 192.0.2.7/24 dev eth0");
    const addresses = await dataPath.addresses(ownerOf("read"));
    expect(addresses).toEqual(expect.arrayContaining(ips.map(({ address }) => address)));
    expect(addresses).toHaveLength(ips.length);
    await dataPath.detach(ownerOf("read"));
    expect(await dataPath.addresses(ownerOf("read"))).toEqual([]);
  });
});

import { afterAll, beforeAll, expect, test } from "vitest";
import { leasesIn } from "../conformance/leases.ts";
import { compileExecutables, debianPlugins, scratch } from "../conformance/plugin.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { ipamCall, mustSucceed } from "./ipam-call.ts";

/** What is different from one main plugin to the next. */
interface MainPlugin {
  readonly type: string;
  readonly conf: object;
  /** Whether something answers at the gateway's address. */
  readonly gatewayAnswers: boolean;
}

const mainPlugins: readonly MainPlugin[] = [
  { type: "bridge", conf: { bridge: "pt-ipam0", isGateway: true }, gatewayAnswers: true },
  { type: "ptp", conf: {}, gatewayAnswers: true },
  { type: "macvlan", conf: { master: "pt-ipam-up" }, gatewayAnswers: false },
];

describeWith("pipette-ipam under Debian's main plugins", ["root", "cni-plugins"], () => {
  let sandbox: NetworkSandbox;

  beforeAll(async () => {
    compileExecutables();
    sandbox = await NetworkSandbox.enter("pt-ipam");
    // The interface that macvlan stands on.
    await sandbox.node("ip link add pt-ipam-up type veth peer name pt-ipam-far");
    for (const end of ["up", "far"]) await sandbox.node(`ip link set pt-ipam-${end} up`);
  });
  afterAll(() => sandbox?.[Symbol.asyncDispose]());

  for (const { type, conf, gatewayAnswers } of mainPlugins) {
    for (const cniVersion of ["1.0.0", "0.2.0"]) {
      test(`${type}, configuration of ${cniVersion}`, async () => {
        using data = scratch();
        const ranges = [[{ subnet: "10.77.0.0/24" }], [{ subnet: "fd77::/64" }]];
        const ipam = { type: "pipette-ipam", dataDir: data.path, ranges, routes: [{ dst: "0.0.0.0/0" }] };
        const network = { cniVersion, name: "pt-ipam", type, ...conf, ipam };
        const executable = `${debianPlugins}/${type}`;
        const pods = [await sandbox.addPod(), await sandbox.addPod()];
        const verb = (name: string, i: number, more: object = {}) =>
          mustSucceed(ipamCall(name, `pod${i}`, { ...network, ...more }, { executable, env: { CNI_NETNS: pods[i]! } }));

        const results = [await verb("ADD", 0), await verb("ADD", 1)];
        const held = (await leasesIn(data.path)).map((lease) => `${lease.address} ${lease.containerId} ${lease.state}`);
        expect(held).toEqual([
          "10.77.0.2/24 pod0 allocated",
          "10.77.0.3/24 pod1 allocated",
          "fd77::2/64 pod0 allocated",
          "fd77::3/64 pod1 allocated",
        ]);
        for (const [i, pod] of pods.entries()) {
          const addresses = await sandbox.pod(pod, "ip -o address show dev eth0");
          expect(addresses).toContain(`inet 10.77.0.${i + 2}/`);
          expect(addresses).toContain(`inet6 fd77::${i + 2}/`);
          expect(await sandbox.pod(pod, "ip -4 route show default")).toContain("default via 10.77.0.1 dev eth0");
          if (gatewayAnswers) expect(await sandbox.ping(pod, "10.77.0.1")).toBe(true);
        }
        expect(await sandbox.ping(pods[0], "10.77.0.3")).toBe(true);

        if (cniVersion === "1.0.0") {
          expect(results[0]?.ips?.map((ip) => ip.address)).toEqual(["10.77.0.2/24", "fd77::2/64"]);
          await verb("CHECK", 0, { prevResult: results[0] });
        } else {
          // The main plugin read an address of each family out of the old shape, and the route with the one it is for.
          const { ip4, ip6 } = results[0] as { ip4?: unknown; ip6?: unknown };
          expect(ip4).toMatchObject({ ip: "10.77.0.2/24", gateway: "10.77.0.1", routes: [{ dst: "0.0.0.0/0" }] });
          expect(ip6).toEqual({ ip: "fd77::2/64", gateway: "fd77::1" });
        }
        for (let again = 0; again < 2; again++) await verb("DEL", 0, { prevResult: results[0] });
        await verb("DEL", 1);
        expect((await leasesIn(data.path)).map((lease) => lease.state)).toEqual(Array(4).fill("cooling"));
        for (const pod of pods) await sandbox.removePod(pod);
      });
    }
  }
});

import { writeFileSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, resultOf, run, scratch, variables } from "./plugin.ts";

beforeAll(compileExecutables);

const dns = { nameservers: ["10.96.0.10"], domain: "d.example", search: ["s.example"], options: ["ndots:5"] };
const plainRoutes = [{ dst: "0.0.0.0/0" }, { dst: "fd00:2::/64", gw: "fd00:1::9" }];
/** Fields of 1.1.0 in every version that has room for them: as host-local does, and nobody minds more keys. */
const routes = [{ dst: "0.0.0.0/0" }, { dst: "fd00:2::/64", gw: "fd00:1::9", mtu: 1400, priority: 5 }];
const v4 = { address: "10.1.0.2/24", gateway: "10.1.0.1" };
const v6 = { address: "fd00:1::2/64", gateway: "fd00:1::1" };

/** Before 0.3.0 there is one address per family, each with its routes; `ips` had a `version` until 1.0.0. */
const legacy = (cniVersion: string) => ({
  cniVersion,
  ip4: { ip: "10.1.0.2/24", gateway: "10.1.0.1", routes: [plainRoutes[0]] },
  ip6: { ip: "fd00:1::2/64", gateway: "fd00:1::1", routes: [plainRoutes[1]] },
  dns,
});
const middle = (cniVersion: string) => ({
  cniVersion,
  ips: [
    { version: "4", ...v4 },
    { version: "6", ...v6 },
  ],
  routes,
  dns,
});

const golden: Readonly<Record<string, object>> = {
  "0.1.0": legacy("0.1.0"),
  "0.2.0": legacy("0.2.0"),
  "0.3.0": middle("0.3.0"),
  "0.3.1": middle("0.3.1"),
  "0.4.0": middle("0.4.0"),
  "1.0.0": { cniVersion: "1.0.0", ips: [v4, v6], routes, dns },
  "1.1.0": { cniVersion: "1.1.0", ips: [v4, v6], routes, dns },
};

function conf(path: string, cniVersion: string | undefined) {
  writeFileSync(`${path}/resolv.conf`, "nameserver 10.96.0.10\ndomain d.example\nsearch s.example\noptions ndots:5\n");
  return {
    cniVersion,
    name: "n",
    type: "bridge",
    ipam: {
      type: "pipette-ipam",
      dataDir: `${path}/leases`,
      resolvConf: `${path}/resolv.conf`,
      ranges: [[{ subnet: "10.1.0.0/24" }], [{ subnet: "fd00:1::/64" }]],
      routes: [{ dst: "0.0.0.0/0" }, { dst: "fd00:2::/64", gw: "fd00:1::9", mtu: 1400, priority: 5 }],
    },
  };
}

test.each(Object.entries(golden))(
  "section 5 Success: an IPAM result in version %s has that version's shape",
  async (version, wanted) => {
    using directory = scratch();
    const stdin = conf(directory.path, version);
    const ended = await run({ executable: "pipette-ipam", env: variables("ADD"), stdin });
    expect(resultOf(ended)).toEqual(wanted);
    // The same words again, to the letter: whoever repeats an ADD must not see a difference.
    expect((await run({ executable: "pipette-ipam", env: variables("ADD"), stdin })).stdout).toBe(ended.stdout);
  },
);

test("section 1 Network configuration: no cniVersion means 0.1.0, in the result as well", async () => {
  using directory = scratch();
  const stdin = conf(directory.path, undefined);
  const ended = await run({ executable: "pipette-ipam", env: variables("ADD"), stdin });
  expect(resultOf(ended)).toEqual(golden["0.1.0"]);
});

test("section 5 Delegated plugins: an IPAM result holds no interfaces, and its addresses point at none", async () => {
  using directory = scratch();
  const stdin = conf(directory.path, "1.1.0");
  const added = resultOf(await run({ executable: "pipette-ipam", env: variables("ADD"), stdin }));
  expect(added).not.toHaveProperty("interfaces");
  for (const ip of added["ips"] as object[]) expect(ip).not.toHaveProperty("interface");
});

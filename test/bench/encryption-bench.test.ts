import { beforeAll, expect, test } from "vitest";
import { compileExecutables } from "../conformance/plugin.ts";
import { describeWith } from "../support/requires.ts";
import { measureEncryption, measureIpsec } from "./encryption/measure-encryption.ts";

describeWith(
  "the benchmark of encryption in miniature",
  ["root", "openvswitch", "nft", "etcd", "wireguard-go", "tun"],
  () => {
    beforeAll(compileExecutables);

    test("throughput and latency get figures, and keys change without a lost packet", async () => {
      const size = { rounds: 1, bytes: 1024 ** 2, questions: 10, rotations: 1 };
      const rows = await measureEncryption({ ...size, progress: () => undefined });
      expect(rows.map(({ unit }) => unit)).toEqual(["ratio", "ratio", "count"]);
      for (const { value } of rows.slice(0, 2)) expect(value).toBeGreaterThan(0);
      expect(rows[2]).toMatchObject({ value: 0, budget: 0 });
    });
  },
);

describeWith(
  "the benchmark of IPsec in miniature",
  ["root", "openvswitch", "nft", "etcd", "strongswan", "kernel-libipsec", "ovs-monitor-ipsec", "tun"],
  () => {
    beforeAll(compileExecutables);

    test("throughput, latency and a new secret get figures", async () => {
      const size = { rounds: 1, bytes: 1024 ** 2, questions: 10, rotations: 1 };
      const rows = await measureIpsec({ ...size, progress: () => undefined });
      expect(rows.map(({ unit }) => unit)).toEqual(["ratio", "ratio", "ms", "count"]);
      for (const { value } of rows.slice(0, 3)) expect(value).toBeGreaterThan(0);
    });
  },
);

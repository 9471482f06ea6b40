import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { checkDatabase } from "../../ipam/check/check-store.ts";
import { Allocator, parseIpamConfig } from "../../ipam/mod.ts";
import { GrpcCode, type IpamClient, RpcError } from "../../ipam/service/ipam-client.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatCidr } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { compileExecutables } from "../conformance/plugin.ts";
import { brokenInvariants } from "../support/invariants.ts";
import { random } from "../support/random.ts";
import { describeWith } from "../support/requires.ts";
import { ipamCall, runCall } from "./ipam-call.ts";
import { attachmentOf, ServiceHome, serviceConf } from "./service-process.ts";

/** Who has the address, by what was answered and not by what the database says. */
class Holders {
  readonly #byAddress = new Map<string, string>();
  readonly doubled: string[] = [];
  /** What each one was told last. */
  readonly told = new Map<string, string>();

  gave(address: string, id: string): void {
    const holder = this.#byAddress.get(address);
    if (holder !== undefined && holder !== id) this.doubled.push(`${address}: ${holder} and ${id}`);
    this.#byAddress.set(address, id);
    this.told.set(id, address);
  }

  /** Before the release is asked for: from then on somebody else may get it. */
  leaves(id: string): void {
    this.#byAddress.delete(this.told.get(id) ?? "");
    this.told.delete(id);
  }
}

/** One way of asking: answers the address, or `undefined` where the pool had none. */
interface Asker {
  add(id: string): Promise<string | undefined>;
  del(id: string): Promise<void>;
}

describeWith(
  "one database under a service, an allocator that stays open as the agent's, and plugin processes",
  ["linux"],
  () => {
    beforeAll(compileExecutables);

    /** 36 addresses for up to 18 × 4 attachments, so that the pool runs dry now and then. */
    const conf = (dataDir: string) => ({
      ...serviceConf,
      ipam: { ...serviceConf.ipam, dataDir, ranges: [[{ subnet: "10.90.0.0/26", rangeEnd: "10.90.0.37" }]] },
    });

    const byService = (client: IpamClient, configuration: ReturnType<typeof conf>): Asker => ({
      async add(id) {
        try {
          const { leases } = await client.allocate({ ...attachmentOf(id), configuration });
          return leases[0]?.address;
        } catch (caught) {
          if (caught instanceof RpcError && caught.grpcCode === GrpcCode.resourceExhausted) return undefined;
          throw caught;
        }
      },
      async del(id) {
        await client.release(attachmentOf(id));
      },
    });

    const byProcess = (configuration: ReturnType<typeof conf>): Asker => {
      const run = async (verb: string, id: string) => {
        const { status, stdout } = await runCall(ipamCall(verb, id, configuration));
        if (status === 0 || JSON.parse(stdout).code === 101) return { status, stdout };
        throw new Error(`${verb} ${id}: ${stdout}`);
      };
      return {
        async add(id) {
          const { status, stdout } = await run("ADD", id);
          return status === 0 ? JSON.parse(stdout).ips[0].address : undefined;
        },
        async del(id) {
          await run("DEL", id);
        },
      };
    };

    const byAllocator = (allocator: Allocator, configuration: ReturnType<typeof conf>): Asker => {
      const network = serviceConf.name;
      const request = { conf: new Fields(configuration), network, version: configuration.cniVersion, args: "" };
      const owner = (sandboxId: string) => ({ network, sandboxId, ifname: "eth0" });
      return {
        async add(id) {
          // As in a server, others have their turn in between.
          await Bun.sleep(1);
          try {
            const [lease] = allocator.allocate(owner(id), parseIpamConfig(request)).leases;
            return lease === undefined ? undefined : formatCidr(lease.address);
          } catch (caught) {
            if (caught instanceof CniError && caught.code === CniCode.ipamFailure) return undefined;
            throw caught;
          }
        },
        async del(id) {
          allocator.release(owner(id), "cooling");
        },
      };
    };

    /** Adds, asks again and gives up a handful of attachments in random order. */
    async function churn(asker: Asker, name: string, seed: number, steps: number, holders: Holders): Promise<void> {
      const next = random(seed);
      for (let step = 0; step < steps; step++) {
        const id = `${name}-${next(4)}`;
        if (holders.told.has(id) && next(3) > 0) {
          holders.leaves(id);
          await asker.del(id);
          continue;
        }
        const before = holders.told.get(id);
        const address = await asker.add(id);
        if (address !== undefined) holders.gave(address, id);
        // Asked again, the answer is the same.
        if (before !== undefined) expect(address).toBe(before);
      }
    }

    test("no address is doubled, nothing is lost, and the database says what was told", async () => {
      await using home = new ServiceHome();
      await home.start();
      const configuration = conf(home.dataDir);
      const holders = new Holders();
      using allocator = await Allocator.open(home.dataDir);
      const crowd = [
        ...Array.from({ length: 8 }, () => ({ asker: byService(home.client(), configuration), steps: 40 })),
        ...Array.from({ length: 2 }, () => ({ asker: byAllocator(allocator, configuration), steps: 40 })),
        ...Array.from({ length: 8 }, () => ({ asker: byProcess(configuration), steps: 20 })),
      ];
      await Promise.all(crowd.map(({ asker, steps }, i) => churn(asker, `c${i}`, 700 + i, steps, holders)));

      expect(holders.doubled).toEqual([]);
      const held = allocator.list().filter(({ state }) => state === "allocated");
      const listed = held.map(({ owner, address }) => [owner.sandboxId, formatCidr(address)]).sort();
      expect(listed).toEqual([...holders.told].sort());
      expect(listed.length).toBeGreaterThan(0);
      const seen: string[] = [];
      for await (const lease of home.client().list(serviceConf.name))
        if (lease.state === "allocated") seen.push(lease.address);
      expect(seen.sort()).toEqual([...holders.told.values()].sort());
      const database = join(home.dataDir, "leases.db");
      expect(brokenInvariants(database)).toEqual([]);
      const report = await checkDatabase(database, { nowMs: Date.now(), bootId: allocator.bootId });
      expect(report?.findings).toEqual([]);
    });
  },
);

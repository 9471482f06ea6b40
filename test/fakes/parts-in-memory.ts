import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DataPathName } from "../../agent/config/agent-config.ts";
import type { Attached, AttachRequest, DataPath, Missing, Problem } from "../../agent/datapath/datapath.ts";
import { CallRing } from "../../agent/metrics/call-record.ts";
import type { AgentContext } from "../../agent/reconcile/agent-context.ts";
import { Allocator, type IpamConfig, parseIpamConfig } from "../../ipam/mod.ts";
import { KeyedMutex } from "../../shared/async/keyed-mutex.ts";
import { ownerKey } from "../../shared/cni/owner-key.ts";
import type { CniResult, Owner } from "../../shared/cni/types.ts";
import { createLogger } from "../../shared/log.ts";
import { type Cidr, formatIp, type Ip, parseCidr } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";

/**
 * For unit tests only: a data path whose kernel is a map, for what a real one does not do on request
 * (refuse, hang, be overtaken at an exact point). The allocator is the real one.
 */
export class DataPathInMemory implements DataPath {
  readonly standing = new Map<string, Attached>();
  /** By `ownerKey`. */
  readonly addressesOf = new Map<string, readonly Cidr[]>();
  /** Runs inside of every attach or detach, before it has an effect; what it throws is the kernel's refusal. */
  before: (action: "attach" | "detach", owner: Owner) => void | Promise<void> = () => undefined;
  wrong: Problem[] = [];
  starts = 0;
  /** Addresses on interfaces of others. */
  heldByOthers: readonly Ip[] = [];
  /** Ids of the containers that share each interface, by `ownerKey`. */
  readonly containersOf = new Map<string, Set<string>>();
  /** Interfaces made. */
  made = 0;
  /** What others have taken away, by `ownerKey`. */
  readonly lost = new Map<string, Missing>();
  /** What was made again, with its addresses. */
  readonly remade: string[] = [];

  async start(): Promise<void> {
    this.starts++;
    this.wrong = [];
  }

  async attach(request: AttachRequest): Promise<CniResult> {
    await this.before("attach", request.owner);
    const { owner, ownLease, ipam } = request;
    if (!this.standing.has(ownerKey(owner))) this.made++;
    this.standing.set(ownerKey(owner), { owner, ownLease, hostIfname: `ve-${owner.sandboxId}` });
    this.containersOf.set(
      ownerKey(owner),
      (this.containersOf.get(ownerKey(owner)) ?? new Set()).add(request.container.id),
    );
    this.addressesOf.set(
      ownerKey(owner),
      ipam.ips.map(({ address }) => address),
    );
    return { ...ipam, interfaces: [{ name: owner.ifname, sandbox: request.container.netns }] };
  }

  async detach(owner: Owner): Promise<void> {
    await this.before("detach", owner);
    this.standing.delete(ownerKey(owner));
    this.containersOf.delete(ownerKey(owner));
    this.addressesOf.delete(ownerKey(owner));
  }

  missing(): readonly Missing[] {
    return [...this.lost.values()];
  }

  async remake({ owner }: Missing, addresses: readonly Ip[] | undefined): Promise<boolean> {
    await this.before("attach", owner);
    this.remade.push(`${owner.sandboxId} ${addresses?.map(formatIp)}`);
    return this.lost.delete(ownerKey(owner));
  }

  async check(): Promise<void> {}

  async list(): Promise<readonly Attached[]> {
    return [...this.standing.values()];
  }

  async addresses(owner: Owner): Promise<readonly Cidr[]> {
    return this.addressesOf.get(ownerKey(owner)) ?? [];
  }

  addressesInUse(): readonly Ip[] {
    return this.heldByOthers;
  }

  async problems(): Promise<readonly Problem[]> {
    return this.wrong;
  }

  async degraded(): Promise<readonly string[]> {
    return [];
  }

  async [Symbol.asyncDispose](): Promise<void> {}

  containers(): string[] {
    return [...this.standing.values()].map((attached) => attached.owner.sandboxId).sort();
  }
}

export interface PartsInMemory extends AgentContext, Disposable {
  readonly dataPath: DataPathInMemory;
  /** The agent's log. */
  readonly lines: string[];
  /** Ranges as our plugin would have them in its configuration. */
  readonly ipam: IpamConfig;
  readonly conf: Readonly<Record<string, unknown>>;
}

export const ownerOf = (sandboxId: string): Owner => ({ network: "pods", sandboxId, ifname: "eth0" });

export async function partsInMemory(dataPath: DataPathName = "bridge"): Promise<PartsInMemory> {
  const dataDir = mkdtempSync(join(tmpdir(), "pipette-parts-"));
  const allocator = await Allocator.open(dataDir);
  const lines: string[] = [];
  const subnet = parseCidr("10.9.0.0/24");
  if (subnet === undefined) throw new Error("Broken invariant: the subnet is one");
  const conf = { name: "pods", ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.9.0.0/24" }]] } };
  return {
    config: {
      socket: join(dataDir, "cni.sock"),
      dataDir,
      logLevel: "debug",
      cni: { confDir: dataDir, fileName: "", cniVersion: "1.0.0", cniVersions: [], disableGC: false, plugins: [] },
      dataPath,
      networks: [
        {
          name: "pods",
          subnets: [subnet],
          bridge: "br0",
          hairpin: false,
          masquerade: false,
          exclude: [],
          sticky: false,
        },
      ],
      callTimeoutMs: 1_000,
      drainTimeoutMs: 1_000,
      janitorIntervalMs: 1_000,
      cooldownMs: 0,
      hnsTimeoutMs: 1_000,
    },
    allocator,
    dataPath: new DataPathInMemory(),
    mutex: new KeyedMutex(8),
    lastAddAt: new Map(),
    calls: new CallRing(),
    pendingCleanup: new Map(),
    livenessProbes: [],
    logger: createLogger("debug", (line) => lines.push(line)),
    lines,
    ipam: parseIpamConfig({ conf: new Fields(conf), network: "pods", version: "1.1.0", args: "" }),
    conf,
    [Symbol.dispose]() {
      allocator[Symbol.dispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

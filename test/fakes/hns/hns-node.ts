import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HnsConfig } from "../../../agent/config/agent-config.ts";
import type { AttachRequest, DataPath } from "../../../agent/datapath/datapath.ts";
import { createHnsDataPath } from "../../../agent/datapath/hns/hns-datapath.ts";
import type { HnsDataPathOptions, HnsNetwork } from "../../../agent/datapath/hns/options.ts";
import type { CniDns, CniResult, Owner } from "../../../shared/cni/types.ts";
import { createLogger } from "../../../shared/log.ts";
import { type Cidr, type Ip, parseCidr, parseIp } from "../../../shared/net/ip.ts";
import { FakeHns } from "./fake-hns.ts";
import { createNamespace } from "./namespaces.ts";

/** For unit tests: the data path on the fake HNS, and a node side that only takes notes. */
export interface HnsNode extends AsyncDisposable {
  readonly fake: FakeHns;
  readonly dataPath: DataPath;
  readonly network: HnsNetwork;
  /** Calls of the node's side. */
  readonly node: { readonly calls: string[]; failing: Error | undefined };
  readonly leftovers: Owner[];
  readonly lines: string[];
  readonly dataDir: string;
  /** Another data path on the same HNS and records, as after a restart of the agent. */
  again(more?: Partial<HnsDataPathOptions>): DataPath;
}

export const namespaceA = "5a5a5a5a-0000-4000-8000-000000000001";
export const namespaceB = "7b7b7b7b-0000-4000-8000-000000000002";

/** @param more of the data path's options */
export function hnsNode(changes: Partial<HnsConfig> = {}, more: Partial<HnsDataPathOptions> = {}): HnsNode {
  const fake = new FakeHns();
  fake.service.store.adapters.add("Ethernet0");
  for (const id of [namespaceA, namespaceB]) createNamespace(fake.service.store, id, {});
  const dataDir = mkdtempSync(join(tmpdir(), "pipette-hns-"));
  const lines: string[] = [];
  const leftovers: Owner[] = [];
  const calls: string[] = [];
  const node = { calls, failing: undefined as Error | undefined };
  const network = networkOf(changes);
  const open = (others: Partial<HnsDataPathOptions> = {}): DataPath =>
    createHnsDataPath({
      networks: [network],
      dataDir,
      hcn: fake.open(),
      node: {
        prepare: async () => {
          calls.push("prepare");
          return { alias: "Ethernet0", mac: "00-15-5D-01-02-03", prefixLength: 24 };
        },
        setUp: async () => {
          calls.push("setUp");
          if (node.failing !== undefined) throw node.failing;
        },
        nodeInterface: async () => ({ mac: "00-15-5D-01-02-03", ipv6: ip("fd01::5") }),
        handBack: async ({ name }) => void calls.push(`handBack ${name}`),
      },
      logger: createLogger("debug", (line) => lines.push(line)),
      needsCleanup: (owner) => void leftovers.push(owner),
      listingMs: 20,
      startPatienceMs: 0,
      ...more,
      ...others,
    });
  const opened: DataPath[] = [];
  const again = (others: Partial<HnsDataPathOptions> = {}): DataPath => {
    const dataPath = open(others);
    opened.push(dataPath);
    return dataPath;
  };
  return {
    fake,
    dataPath: again(),
    network,
    node,
    leftovers,
    lines,
    dataDir,
    again,
    async [Symbol.asyncDispose]() {
      for (const dataPath of opened) await dataPath[Symbol.asyncDispose]();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

function networkOf(changes: Partial<HnsConfig>): HnsNetwork {
  return {
    name: "pods",
    subnet: cidr("10.9.0.0/24"),
    bridge: "br-int",
    hns: {
      network: "pipette",
      type: "Transparent",
      nodeAddress: ip("192.168.1.5"),
      natName: "",
      ovsExtension: false,
      policies: [],
      peers: [],
      ...changes,
    },
  };
}

export function cidr(text: string): Cidr {
  const parsed = parseCidr(text);
  if (parsed === undefined) throw new Error(`"${text}" is no network`);
  return parsed;
}

export function ip(text: string): Ip {
  const parsed = parseIp(text);
  if (parsed === undefined) throw new Error(`"${text}" is no address`);
  return parsed;
}

export const ownerOf = (sandboxId: string): Owner => ({ network: "pods", sandboxId, ifname: "eth0" });

/** A sandbox in `netns`, at 10.9.0.`host`. */
export function requestFor(sandboxId: string, netns: string, host: number, dns: CniDns = {}): AttachRequest {
  const ipam: CniResult = {
    interfaces: [],
    ips: [{ address: cidr(`10.9.0.${host}/24`), gateway: ip("10.9.0.1") }],
    routes: [{ dst: cidr("0.0.0.0/0") }],
    dns,
  };
  const kind = netns === "none" ? ({ t: "sandbox" } as const) : ({ t: "sandbox", namespace: netns } as const);
  return { owner: ownerOf(sandboxId), container: { id: sandboxId, netns, kind }, ipam, ownLease: true };
}

/** The same for a workload container of the sandbox. */
export function joining(request: AttachRequest, id: string): AttachRequest {
  const { sandboxId } = request.owner;
  return { ...request, container: { id, netns: `container:${sandboxId}`, kind: { t: "workload", sandboxId } } };
}

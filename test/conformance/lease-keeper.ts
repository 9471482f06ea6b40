import { Allocator, dataDirOf, ipamResult, parseIpamConfig, readDns } from "../../ipam/mod.ts";
import { ipamKind } from "../../shared/cni/ipam-kind.ts";
import { encodeResult } from "../../shared/cni/result.ts";
import type { Attachment } from "../../shared/cni/types.ts";
import { parseVersion } from "../../shared/cni/versions.ts";
import { CniError } from "../../shared/errors.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import type { Answer, Asked } from "./scripted-agent.ts";

/**
 * What an agent does about leases, with the real allocator and without a data path: ADD allocates, DEL and GC
 * give up, and nothing ever settles what was given up.
 */
export class LeaseKeeper {
  /** Every directory that an ADD named, for GC names none. */
  readonly #dataDirs = new Set<string>();

  async answer({ method, request }: Asked): Promise<Answer> {
    try {
      if (method === "CmdAdd") return { cni_result: JSON.stringify(await this.#add(request)) };
      if (method === "CmdDel") await this.#del(request);
      if (method === "Gc") await this.#gc(request);
      return {};
    } catch (caught) {
      const { code, message } = CniError.from(caught);
      return { error: { code, message } };
    }
  }

  async #add(request: Asked["request"]): Promise<object> {
    const conf = confOf(request);
    const version = parseVersion(conf.string("cniVersion") ?? "") ?? "1.1.0";
    const interfaces = [
      { name: "vethx" },
      { name: request["ifname"], mac: "0a:58:0a:01:00:02", sandbox: request["netns"] },
    ];
    const given = conf.raw["ipamResult"] as object | undefined;
    if (given !== undefined || ipamKind(conf) !== "own") return { interfaces, ips: [], ...given, cniVersion: version };
    const args = String(request["args"] ?? "");
    const owner = ownerOf(conf, request);
    const config = parseIpamConfig({ conf, network: owner.network, version, args });
    this.#dataDirs.add(config.dataDir);
    using allocator = await Allocator.open(config.dataDir);
    const { leases } = allocator.allocate(owner, config);
    return { interfaces, ...JSON.parse(encodeResult(ipamResult(config, leases, await readDns(config)), version)) };
  }

  async #del(request: Asked["request"]): Promise<void> {
    const conf = confOf(request);
    using allocator = await Allocator.openExisting(dataDirOf(conf));
    allocator?.release(ownerOf(conf, request), "releasing");
  }

  async #gc({ network, valid }: Asked["request"]): Promise<void> {
    const keep = (valid as { container_id: string; ifname: string }[]).map(
      ({ container_id, ifname }): Attachment => ({ containerId: container_id, ifname }),
    );
    for (const dataDir of this.#dataDirs) {
      using allocator = await Allocator.open(dataDir);
      allocator.retain(String(network), keep, "releasing");
    }
  }
}

const confOf = (request: Asked["request"]): Fields => Fields.parse(String(request["network_configuration"]));

const ownerOf = (conf: Fields, request: Asked["request"]) => ({
  network: conf.string("name") ?? "",
  sandboxId: String(request["container_id"]),
  ifname: String(request["ifname"]),
});

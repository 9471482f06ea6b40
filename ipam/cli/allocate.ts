import { containerIdRule, ifnameRule, wrongContainerId, wrongIfname } from "../../shared/cni/names.ts";
import { encodeResult } from "../../shared/cni/result.ts";
import type { Pod } from "../../shared/cni/types.ts";
import { parseIp } from "../../shared/net/ip.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson } from "../../shared/terminal/printable.ts";
import { Allocator } from "../allocator.ts";
import { ipamResult, readDns } from "../result.ts";
import { leaseTable, leaseView } from "./lease-view.ts";
import { ipamConfigOf, type NetworkConf, readNetworkConf } from "./network-conf.ts";
import { confOption, dataDirFor, dataDirOption, jsonOption } from "./scope.ts";

export const containerOption = {
  value: "ID",
  help: "the container id of the sandbox",
  rule: { wrong: wrongContainerId, wanted: containerIdRule },
} as const;

export const ifnameOption = {
  value: "NAME",
  help: "the interface in the sandbox (default eth0)",
  rule: { wrong: wrongIfname, wanted: ifnameRule },
} as const;

/** The default of the option. */
export const usualIfname = "eth0";

export const allocate = defineCommand({
  action: "allocate addresses",
  about: `Gives one address of each range set of the network to an attachment, as an ADD of the runtime does; one that has
them already gets the same. Nothing is wired: whoever types this has to release them again, and a GC of the
runtime takes them back when it does not know the attachment.`,
  options: {
    conf: { ...confOption, required: true },
    container: { ...containerOption, required: true },
    ifname: ifnameOption,
    ip: {
      value: "ADDRESS",
      help: "this address and no other, where it is free",
      repeats: true,
      rule: {
        wrong: (text) => (parseIp(text) === undefined ? `"${text}"` : undefined),
        wanted: "an IPv4 or IPv6 address",
      },
    },
    pod: {
      value: "NAMESPACE/NAME",
      help: "the pod that the lease names",
      rule: { wrong: (text) => (podIn(text) === undefined ? `"${text}"` : undefined), wanted: "NAMESPACE/NAME" },
    },
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  run: async ({ options }, io) => {
    const conf = asking(await readNetworkConf(options.conf, io), options.ip);
    const dataDir = dataDirFor(options["data-dir"], conf, io);
    const config = await ipamConfigOf(conf);
    const dns = await readDns(config);
    using allocator = await Allocator.open(dataDir);
    const owner = { network: conf.network, sandboxId: options.container, ifname: options.ifname ?? usualIfname };
    const { leases, created } = allocator.allocate(owner, config, podIn(options.pod ?? ""));
    const result: unknown = JSON.parse(encodeResult(ipamResult(config, leases, dns), conf.version));
    if (options.json) io.stdout(formatJson({ created, leases: leases.map(leaseView), result }));
    else io.stdout(`${leaseTable(leases, Date.now())}${created ? "" : "It had them already\n"}`);
    return exitStatus.done;
  },
});

/** Passes the addresses as a runtime does, so that every rule of an ADD applies. */
function asking(conf: NetworkConf, ips: readonly string[]): NetworkConf {
  if (ips.length === 0) return conf;
  const runtimeConfig = { ...conf.conf.object("runtimeConfig")?.raw, ips };
  return { ...conf, conf: new Fields({ ...conf.conf.raw, runtimeConfig }) };
}

function podIn(text: string): Pod | undefined {
  const [namespace = "", name = "", ...more] = text.split("/");
  return namespace === "" || name === "" || more.length > 0 ? undefined : { namespace, name, uid: "" };
}

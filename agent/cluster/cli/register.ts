import { formatCidr, type Ip, parseIp } from "../../../shared/net/ip.ts";
import { nodeAddressRule, parseNodeAddress } from "../../../shared/net/node-address.ts";
import { interfaceMac, macRule } from "../../../shared/net/parse-mac.ts";
import { defineCommand } from "../../../shared/terminal/command.ts";
import { exitStatus } from "../../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../../shared/terminal/printable.ts";
import type { Registration } from "../node-registry.ts";
import { textOfNode } from "../node-text.ts";
import { configuredAddresses, findOwnAddresses, nodeUid } from "../this-node.ts";
import { configOption, fail, jsonOption, type Opened, refuseName, withRegistry } from "./with-registry.ts";

const action = "register the node";

export const register = defineCommand({
  action,
  about: `Registers this node, as its agent does when it starts, and shows the subnet that it has then; the same again changes
nothing. With NAME it is another node, of which nothing can be found out here: --uid and --address say it.`,
  operands: [{ name: "NAME", help: "the node (default: this one)", optional: true }],
  options: {
    address: {
      value: "ADDRESS",
      help: "where the others reach it, one of each family at most (default for this node: what the configuration or its interfaces say)",
      repeats: true,
      rule: { wrong: (text) => (parseNodeAddress(text) === undefined ? "none" : undefined), wanted: nodeAddressRule },
    },
    mac: {
      value: "MAC",
      help: "of the interface with that address",
      rule: { wrong: (text) => (interfaceMac(text) === undefined ? "none" : undefined), wanted: macRule },
    },
    uid: {
      value: "UID",
      help: 'the machine\'s own, from "node-uid" of its data directory (default for this node: what stands there)',
      rule: {
        wrong: (text) => (/^[A-Za-z0-9-]{1,64}$/.test(text) ? undefined : "none"),
        wanted: "1 to 64 letters, digits or dashes",
      },
    },
    config: configOption,
    json: jsonOption,
  },
  exits: { 1: "failed: the registry does not answer, the name is another machine's, no subnet is free" },
  run: ({ options, operands: [name] }, io) =>
    withRegistry(options, action, io, async (opened) => {
      const { registry, nodes } = opened;
      const refused = name === undefined ? undefined : refuseName(io, action, name);
      if (refused !== undefined) return refused;
      const addresses = options.address.map(parseIp).filter((ip): ip is Ip => ip !== undefined);
      const other = name !== undefined && name !== nodes.name;
      if (other && (options.uid === undefined || addresses.length === 0))
        return fail(io, action, `"${name}" is not this node`, "--uid and --address for it", exitStatus.wrongArguments);
      const mac = options.mac === undefined ? undefined : interfaceMac(options.mac);
      const said = {
        name: name ?? nodes.name,
        ...(options.uid === undefined ? {} : { uid: options.uid }),
        ...(mac === undefined ? {} : { mac }),
      };
      const self = other ? { uid: "", ...said, addresses } : await ownRegistration(opened, addresses, said);
      const node = await registry.register(self);
      if (options.json) io.stdout(formatJson(textOfNode(node)));
      else io.stdout(`${printable(node.name)} has ${node.subnets.map(formatCidr).join(", ")}\n`);
      return exitStatus.done;
    }),
});

async function ownRegistration(
  { config, nodes }: Opened,
  addresses: readonly Ip[],
  said: Partial<Registration> & { readonly name: string },
): Promise<Registration> {
  const own = await findOwnAddresses(addresses.length > 0 ? addresses : configuredAddresses(config));
  const mac = nodes.mac ?? own.mac;
  const uid = said.uid ?? nodeUid(config.dataDir);
  return { ...(mac === undefined ? {} : { mac }), ...said, uid, addresses: own.addresses };
}

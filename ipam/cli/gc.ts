import type { Attachment } from "../../shared/cni/types.ts";
import { validAttachments } from "../../shared/cni/valid-attachments.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";
import { parseJson } from "../../shared/schema/json.ts";
import { faultPlace } from "../../shared/schema/json-fault.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { defineCommand } from "../../shared/terminal/command.ts";
import { exitStatus } from "../../shared/terminal/exit-status.ts";
import { formatJson, printable } from "../../shared/terminal/printable.ts";
import { leaseTable, leaseView } from "./lease-view.ts";
import { readInput } from "./network-conf.ts";
import { openAllocator } from "./open-store.ts";
import { confOption, dataDirOption, jsonOption, networkOption } from "./options.ts";
import { oneNetwork, scopeOf, unknownNetwork } from "./scope.ts";

const action = "collect garbage";

export const gc = defineCommand({
  action,
  about: `Takes back every allocated address of a network whose attachment is not in the list to keep, as a GC of the
runtime does. The list is JSON: [{"containerID": "…", "ifname": "eth0"}, …], or the configuration of a CNI GC, with
the same under "cni.dev/valid-attachments". An empty list keeps nothing. --dry-run shows what would go.`,
  options: {
    conf: confOption,
    network: { ...networkOption, help: "the network, where no --conf names it" },
    keep: { value: "FILE", of: "file", help: 'the attachments that stand ("-": standard input)', required: true },
    "dry-run": { help: "changes nothing, only lists what would be taken back" },
    json: jsonOption,
    "data-dir": dataDirOption,
  },
  exits: { 0: "done, also when nothing was to be taken back", 3: "there is no database, or no such network" },
  run: async ({ options }, io) => {
    const scope = await scopeOf(options, io);
    const network = oneNetwork(scope, action, io);
    if (network === undefined) return exitStatus.wrongArguments;
    const keep = attachmentsIn(await readInput(options.keep, "attachments to keep", io));
    const unknown = await unknownNetwork(scope, action, io);
    if (unknown !== undefined) return unknown;
    using allocator = await openAllocator(scope.dataDir, action, io);
    if (allocator === undefined) return exitStatus.notThere;
    const { "dry-run": isTrial } = options;
    const stale = allocator.unclaimed(network, keep);
    if (!isTrial) allocator.retain(network, keep, "cooling");
    const generations = new Set(stale.map(({ generation }) => generation));
    const taken = isTrial
      ? stale
      : allocator.list(network).filter(({ generation, state }) => generations.has(generation) && state === "cooling");
    if (options.json)
      io.stdout(formatJson({ network, dryRun: isTrial, keep: keep.length, released: taken.map(leaseView) }));
    else
      io.stdout(
        `${printable(sentence(taken.length, network, keep.length, isTrial))}\n${taken.length === 0 ? "" : leaseTable(taken, Date.now())}`,
      );
    return exitStatus.done;
  },
});

function sentence(count: number, network: string, keep: number, isTrial: boolean): string {
  const addresses = count === 1 ? "1 address" : `${count === 0 ? "no" : count} addresses`;
  const kept = keep === 1 ? "1 attachment is kept" : `${keep} attachments are kept`;
  return `${isTrial ? "Would take back" : "Took back"} ${addresses} of network "${network}"; ${kept}`;
}

function attachmentsIn(text: string): readonly Attachment[] {
  const what = "attachments to keep";
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (cause) {
    const is = `${reasonOf(cause)}${faultPlace(text)}`;
    throw new CniError(CniCode.decode, `Cannot read the ${what}: ${is}, wanted a JSON array or object`, { cause });
  }
  const object = Array.isArray(value) ? { "cni.dev/valid-attachments": value } : value;
  return validAttachments(Fields.parse(JSON.stringify(object), what));
}

import type { Fields } from "../schema/json-fields.ts";
import type { Attachment } from "./types.ts";

/** The specification's key, and the one of its first draft, which the reference library writes too. */
const keys = ["cni.dev/valid-attachments", "cni.dev/attachments"] as const;

/**
 * Reads what to keep (specification 1.1.0, "GC: Clean up any stale resources"). A missing key is refused, because as an
 * empty list it would end every attachment of the node. `null` is an empty list: the reference library writes it for a
 * runtime without containers.
 * @throws {CniError} code 7
 */
export function validAttachments(conf: Fields): readonly Attachment[] {
  const key = keys.find((candidate) => Object.hasOwn(conf.raw, candidate));
  if (key === undefined) throw conf.wrong(keys[0], undefined, "the attachments to keep");
  return (conf.objects(key) ?? []).map((entry) => ({
    containerId: required(entry, "containerID"),
    ifname: required(entry, "ifname"),
  }));
}

function required(entry: Fields, key: string): string {
  const text = entry.string(key);
  if (text === undefined || text === "") throw entry.wrong(key, text, "a name");
  return text;
}

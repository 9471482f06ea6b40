import type { Owner } from "../../../shared/cni/types.ts";
import { validAttachments } from "../../../shared/cni/valid-attachments.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { parseJson } from "../../../shared/schema/json.ts";
import { Fields, isObject } from "../../../shared/schema/json-fields.ts";

/** The runtime's list of pods. */
export interface RuntimeList {
  /** When it was made, at the latest; milliseconds since 1970. What is younger it cannot know. */
  readonly takenAtMs: number;
  knows(owner: Owner): boolean;
  /** Attachments that must exist; empty if the list names only sandboxes, because some use the node's own network. */
  readonly attachments: readonly { readonly containerId: string; readonly ifname: string }[];
}

const wanted = 'the output of "crictl pods -o json", or attachments as a CNI GC has them';

/**
 * Reads `crictl pods -o json`, `[{"containerID": "…", "ifname": "eth0"}, …]`, or the configuration of a CNI GC.
 * @throws {CniError} code 6 or 7 for anything else, which as an empty list would end every pod of the node
 */
export function parseRuntimeList(text: string, takenAtMs: number): RuntimeList {
  const value = jsonOf(text);
  if (isObject(value) && Array.isArray(value["items"])) return sandboxes(value["items"], takenAtMs);
  const object = Array.isArray(value) ? { "cni.dev/valid-attachments": value } : value;
  const attachments = validAttachments(Fields.parse(JSON.stringify(object), "list of the runtime"));
  const known = new Set(attachments.map(({ containerId, ifname }) => `${containerId}\n${ifname}`));
  return { takenAtMs, attachments, knows: ({ sandboxId, ifname }) => known.has(`${sandboxId}\n${ifname}`) };
}

function sandboxes(items: readonly unknown[], takenAtMs: number): RuntimeList {
  const ids = new Set(
    items.map((item) => {
      const id = isObject(item) ? item["id"] : undefined;
      if (typeof id === "string" && id !== "") return id;
      throw unreadable('an entry of "items" has no "id"', CniCode.invalidConfig);
    }),
  );
  return { takenAtMs, attachments: [], knows: ({ sandboxId }) => ids.has(sandboxId) };
}

function jsonOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch (cause) {
    throw unreadable(reasonOf(cause), CniCode.decode);
  }
}

const unreadable = (is: string, code: number): CniError =>
  new CniError(code, `Cannot read the list of the runtime: ${is}, wanted ${wanted}`);

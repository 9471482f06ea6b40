import {
  containerIdRule,
  ifnameRule,
  networkNameRule,
  wrongContainerId,
  wrongIfname,
  wrongNetworkName,
} from "../../shared/cni/names.ts";
import type { Attachment, Owner } from "../../shared/cni/types.ts";
import { CniCode, CniError } from "../../shared/errors.ts";
import type { CollectRequest, OwnerRequest } from "../../shared/proto/ipam-messages.ts";
import { show } from "../../shared/schema/json-fields.ts";

/**
 * Checks the names in a request before anything is done. Each function throws a `CniError`, code 4 or 7, naming the
 * field.
 */

export function ownerIn({ network, containerId, ifname }: OwnerRequest): Owner {
  requireNetworkName(network);
  requireAttachment({ containerId, ifname });
  return { network, sandboxId: containerId, ifname };
}

/** Empty means every network. */
export function networkIn({ network }: { readonly network: string }): string | undefined {
  if (network === "") return undefined;
  requireNetworkName(network);
  return network;
}

export function keptIn({ network, valid }: CollectRequest): readonly Attachment[] {
  requireNetworkName(network);
  if (valid === undefined) throw wrong("valid", undefined, "the attachments to keep, or none of them, but said");
  for (const attachment of valid.attachments) requireAttachment(attachment);
  return valid.attachments;
}

function requireNetworkName(name: string): void {
  if (wrongNetworkName(name) !== undefined) throw wrong("network", name, networkNameRule, CniCode.invalidConfig);
}

function requireAttachment({ containerId, ifname }: Attachment): void {
  if (wrongContainerId(containerId) !== undefined) throw wrong("container_id", containerId, containerIdRule);
  if (wrongIfname(ifname) !== undefined) throw wrong("ifname", ifname, ifnameRule);
}

function wrong(field: string, value: unknown, wanted: string, code: number = CniCode.invalidEnvironment): CniError {
  const is = value === undefined ? "missing" : show(value);
  return new CniError(code, `Cannot read the request: "${field}" is ${is}, wanted ${wanted}`);
}

import { unreachable } from "../../../shared/assert.ts";
import { CniCode, CniError } from "../../../shared/errors.ts";
import type { Kernel, NetworkNamespace } from "../../protocols/netlink/mod.ts";

/**
 * Opens a sandbox's network namespace; the caller disposes it.
 * @throws {CniError} code 4 where the path is missing, something else, or the node's own namespace
 */
export function openSandbox(kernel: Kernel, path: string): NetworkNamespace {
  const opened = kernel.namespaceAt(path);
  switch (opened.t) {
    case "open":
      return opened.namespace;
    case "missing":
      throw wrong(path, "does not exist");
    case "other":
      throw wrong(path, "is not a network namespace");
    case "own":
      throw wrong(path, "is the network namespace of the node itself");
    case "refused":
      throw wrong(path, `cannot be opened (${opened.reason})`);
    default:
      return unreachable(opened);
  }
}

const wrong = (path: string, is: string): CniError =>
  new CniError(
    CniCode.invalidEnvironment,
    `Cannot enter the sandbox: CNI_NETNS "${path}" ${is}, wanted the network namespace of a sandbox`,
  );

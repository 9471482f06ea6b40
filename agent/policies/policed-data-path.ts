import type { DataPath } from "../datapath/datapath.ts";
import type { NodePolicies } from "./node-policies.ts";

/**
 * The same data path, whose interfaces meet their policies from the first packet: they are closed before they are made,
 * and `attach` answers when the pod's policies are in force, or when that has taken too long.
 */
export function policed(dataPath: DataPath, policies: NodePolicies): DataPath {
  const { missing, remake, watch } = dataPath;
  return {
    start: () => dataPath.start(),
    attach: async (request) => {
      // A workload container joins the interface of its sandbox.
      if (request.container.kind.t === "workload") return await dataPath.attach(request);
      request.phases?.enter("policies");
      await policies.admit(request.owner, request.pod ?? "none");
      request.phases?.enter("interface");
      const result = await dataPath.attach(request);
      request.phases?.enter("policies");
      await policies.settle(request.owner);
      return result;
    },
    detach: async (owner) => {
      await dataPath.detach(owner);
      policies.forget(owner);
    },
    check: (owner, netns, prevResult) => dataPath.check(owner, netns, prevResult),
    list: () => dataPath.list(),
    addresses: (owner) => dataPath.addresses(owner),
    addressesInUse: (owner) => dataPath.addressesInUse(owner),
    ...(missing === undefined ? {} : { missing: () => missing.call(dataPath) }),
    ...(remake === undefined ? {} : { remake: (lost, addresses) => remake.call(dataPath, lost, addresses) }),
    problems: async () => [...(await dataPath.problems()), ...policies.problems()],
    degraded: async () => {
      const standing = (await dataPath.list()).map(({ owner }) => owner);
      return [...(await dataPath.degraded()), ...policies.degraded(standing)];
    },
    ...(watch === undefined ? {} : { watch: (look) => watch.call(dataPath, look) }),
    [Symbol.asyncDispose]: () => dataPath[Symbol.asyncDispose](),
  };
}

import {
  documentVersion,
  maxRows,
  maxValues,
  type PoliciesDocument,
  type ServicesDocument,
} from "../../shared/documents/mod.ts";
import { balancedService } from "../server/balancing-service.ts";
import { nameOf } from "../server/policy-service.ts";
import { attachmentOf, cut, namedPod, podKeys, type ViewSources } from "./view-sources.ts";

/** @param name `namespace/name` of a service, or with `:port`; empty: all */
export function servicesView({ services: of, node }: ViewSources, name: string): ServicesDocument {
  const services = of();
  const head = { kind: "services", version: documentVersion, node } as const;
  if (services === undefined) return { ...head, balanced: false, services: [], omitted: 0 };
  const named = [...services.wanted.values()].filter(
    ({ key }) => name === "" || key === name || key.startsWith(`${name}:`) || key.startsWith(`${name}/`),
  );
  const { kept, omitted } = cut(
    named.sort((a, b) => (a.key < b.key ? -1 : 1)),
    maxRows,
  );
  // A few endpoints of each where there are very many services: all of it has to fit into one message.
  const most = Math.max(1, Math.min(maxValues, Math.floor(maxEndpoints / Math.max(1, kept.length))));
  return {
    ...head,
    balanced: true,
    services: kept.map((port) => {
      const { endpoints, ...service } = balancedService(port, services.refusalOf(port.key) ?? "");
      const shown = cut(endpoints, most);
      return { ...service, endpoints: shown.kept, omittedEndpoints: shown.omitted };
    }),
    omitted,
  };
}

/** Of all services together, at a hundred bytes each: a third of the largest answer. */
const maxEndpoints = 12_000;

/** @param name of a pod, as in `podsView` */
export async function policiesView(sources: ViewSources, name: string): Promise<PoliciesDocument> {
  const { context, node } = sources;
  const policies = sources.policies();
  const head = { kind: "policies", version: documentVersion, node } as const;
  if (policies === undefined) return { ...head, enforced: false, summary: "", differences: [], pods: [], omitted: 0 };
  const isNamed = namedPod(name);
  const isolated = Array.from(policies.isolated, ({ owner, directions, by }) => ({
    pod: context.allocator.find(owner)[0]?.pod,
    owner,
    directions,
    by,
  }));
  const { kept, omitted } = cut(
    isolated.filter(({ pod }) => isNamed(pod)),
    maxRows,
  );
  return {
    ...head,
    enforced: true,
    summary: policies.summary,
    differences: (await policies.differences()).slice(0, maxValues),
    pods: kept.map(({ owner, pod, directions, by }) => {
      const { podUid: _, ...named } = podKeys(pod);
      return {
        ...attachmentOf(owner),
        ...named,
        directions: [...directions],
        policies: by.slice(0, maxValues).map(nameOf),
      };
    }),
    omitted,
  };
}

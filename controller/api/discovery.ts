import { version as release } from "../../shared/version.ts";

/** What there is, as `kubectl api-resources` and the aggregation layer ask for it. */

export interface ApiGroup {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly ApiResource[];
}

interface ApiResource {
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  /** For `kubectl explain`. */
  readonly about: string;
}

const read = ["get", "list", "watch"];

export const antreaGroup: ApiGroup = {
  group: "controlplane.antrea.io",
  version: "v1beta2",
  resources: [
    {
      name: "addressgroups",
      kind: "AddressGroup",
      verbs: read,
      about: "Addresses that rules of network policies name as peers: pods, nodes and blocks.",
    },
    {
      name: "appliedtogroups",
      kind: "AppliedToGroup",
      verbs: read,
      about: "Pods that a network policy is for, by node.",
    },
    { name: "egressgroups", kind: "EgressGroup", verbs: read, about: "None: Pipette has no Egress." },
    {
      name: "networkpolicies",
      kind: "NetworkPolicy",
      verbs: read,
      about: "A NetworkPolicy of the cluster as nodes enforce it: rules that name groups, with the span of nodes.",
    },
    {
      name: "networkpolicies/status",
      kind: "NetworkPolicyStatus",
      verbs: ["create", "get"],
      about: "How far nodes have put a network policy in force.",
    },
    {
      name: "networkpolicyevaluation",
      kind: "NetworkPolicyEvaluation",
      verbs: ["create"],
      about: "The rule that decides on connections between two pods.",
    },
    {
      name: "nodestatssummaries",
      kind: "NodeStatsSummary",
      verbs: ["create"],
      about: "What rules of network policies have let pass and dropped on a node.",
    },
    {
      name: "supportbundlecollections",
      kind: "SupportBundleCollection",
      verbs: read,
      about: "None: nodes collect no bundles on the cluster's behalf.",
    },
  ],
};

export const pipetteGroup: ApiGroup = {
  group: "controlplane.pipette.io",
  version: "v1",
  resources: [
    {
      name: "nodepolicies",
      kind: "NodePolicies",
      verbs: ["watch"],
      about: "All that a node needs of network policies, in the order in which nothing opens.",
    },
    {
      name: "policyreports",
      kind: "PolicyReports",
      verbs: ["create", "get", "list"],
      about: "What nodes tell of the policies that they enforce.",
    },
    {
      name: "policystats",
      kind: "PolicyStats",
      verbs: ["list"],
      about: "By policy: what its rules have let pass and dropped on all nodes.",
    },
  ],
};

export const apiGroups = [antreaGroup, pipetteGroup];

const groupOf = ({ group, version }: ApiGroup): object => {
  const own = { groupVersion: `${group}/${version}`, version };
  return { name: group, versions: [own], preferredVersion: own };
};

const resourcesOf = ({ group, version, resources }: ApiGroup): object => ({
  kind: "APIResourceList",
  apiVersion: "v1",
  groupVersion: `${group}/${version}`,
  resources: resources.map(({ name, kind, verbs }) => ({ name, singularName: "", namespaced: false, kind, verbs })),
});

const titleOf = { title: "Pipette's controller", version: release };

/** Objects are described in docs/policies.md; to clients they are open. */
const schemaOf = ({ group, version }: ApiGroup, { kind, about }: ApiResource): object => ({
  type: "object",
  description: about,
  "x-kubernetes-group-version-kind": [{ group, version, kind }],
});

const schemaName = ({ group, version }: ApiGroup, { kind }: ApiResource): string =>
  [...group.split(".").reverse(), version, kind].join(".");

const schemasOf = (groups: readonly ApiGroup[]): object =>
  Object.fromEntries(groups.flatMap((of) => of.resources.map((each) => [schemaName(of, each), schemaOf(of, each)])));

const pathsOf = (of: ApiGroup, answer: (ref: string) => object, prefix: string): object => {
  const listed = of.resources.filter(({ verbs }) => verbs.includes("list"));
  return Object.fromEntries(
    listed.map((each) => [
      `/apis/${of.group}/${of.version}/${each.name}`,
      {
        get: {
          operationId: `list-${each.name}`,
          // By these kubectl finds what a path is about.
          "x-kubernetes-action": "list",
          "x-kubernetes-group-version-kind": { group: of.group, version: of.version, kind: each.kind },
          responses: { 200: { description: "OK", ...answer(`${prefix}${schemaName(of, each)}`) } },
        },
      },
    ]),
  );
};

const openApi2: object = {
  swagger: "2.0",
  info: titleOf,
  paths: Object.assign({}, ...apiGroups.map((of) => pathsOf(of, ($ref) => ({ schema: { $ref } }), "#/definitions/"))),
  definitions: schemasOf(apiGroups),
};

const openApi3 = (of: ApiGroup): object => ({
  openapi: "3.0.0",
  info: titleOf,
  paths: pathsOf(of, ($ref) => ({ content: { "application/json": { schema: { $ref } } } }), "#/components/schemas/"),
  components: { schemas: schemasOf([of]) },
});

const openApi3Root: object = {
  paths: Object.fromEntries(
    apiGroups.map((of) => {
      const path = `apis/${of.group}/${of.version}`;
      const hash = Bun.hash(JSON.stringify(openApi3(of))).toString(16);
      return [path, { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }];
    }),
  ),
};

/** By path, all that never changes. */
export const documents: ReadonlyMap<string, object> = new Map<string, object>([
  ["/apis", { kind: "APIGroupList", apiVersion: "v1", groups: apiGroups.map(groupOf) }],
  ["/openapi/v2", openApi2],
  ["/openapi/v3", openApi3Root],
  ...apiGroups.flatMap((of): [string, object][] => [
    [`/apis/${of.group}`, { kind: "APIGroup", apiVersion: "v1", ...groupOf(of) }],
    [`/apis/${of.group}/${of.version}`, resourcesOf(of)],
    [`/openapi/v3/apis/${of.group}/${of.version}`, openApi3(of)],
  ]),
]);

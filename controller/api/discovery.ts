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
}

const read = ["get", "list", "watch"];

export const antreaGroup: ApiGroup = {
  group: "controlplane.antrea.io",
  version: "v1beta2",
  resources: [
    { name: "addressgroups", kind: "AddressGroup", verbs: read },
    { name: "appliedtogroups", kind: "AppliedToGroup", verbs: read },
    { name: "egressgroups", kind: "EgressGroup", verbs: read },
    { name: "networkpolicies", kind: "NetworkPolicy", verbs: read },
    { name: "networkpolicies/status", kind: "NetworkPolicyStatus", verbs: ["create", "get"] },
    { name: "networkpolicyevaluation", kind: "NetworkPolicyEvaluation", verbs: ["create"] },
    { name: "nodestatssummaries", kind: "NodeStatsSummary", verbs: ["create"] },
    { name: "supportbundlecollections", kind: "SupportBundleCollection", verbs: read },
  ],
};

export const pipetteGroup: ApiGroup = {
  group: "controlplane.pipette.io",
  version: "v1",
  resources: [
    { name: "nodepolicies", kind: "NodePolicies", verbs: ["watch"] },
    { name: "policyreports", kind: "PolicyReports", verbs: ["create", "get", "list"] },
    { name: "policystats", kind: "PolicyStats", verbs: ["list"] },
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
  resources: resources.map((each) => ({ ...each, singularName: "", namespaced: false })),
});

const titleOf = { title: "Pipette's controller", version: release };

/** Objects are described in docs/policies.md; to clients they are open. */
const schemaOf = ({ group, version }: ApiGroup, { kind }: ApiResource): object => ({
  type: "object",
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

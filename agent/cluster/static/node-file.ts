import {
  type Findings,
  type Infer,
  list,
  object,
  opaque,
  optional,
  type ReadDocument,
  readDocument,
  required,
} from "../../../shared/schema/mod.ts";
import { type ClusterNode, isProjectName } from "../node-registry.ts";
import { nodeSchema } from "../node-text.ts";
import { conflictsAmong } from "../peers.ts";

/** The content of a file of nodes. */
export interface NodeFile {
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  /** VNIDs of projects; absent where the file keeps none. */
  readonly tenants?: ReadonlyMap<string, number>;
}

/** Five thousand nodes with all their keys are 1.2 MiB. */
export const maxNodeFileBytes = 4 * 1024 * 1024;

const maxVnid = 2 ** 24 - 1;

const tenants = opaque<Readonly<Record<string, number>>>(
  "a map from names of projects to VNIDs: 0, or 10 to 16777215, each but 0 for few projects",
  (value) => {
    const strange = Object.entries(value).find(([project, vnid]) => !isProjectName(project) || !isVnid(vnid));
    return strange === undefined ? undefined : `"$.${strange[0]}" is ${JSON.stringify(strange[1])}`;
  },
);

/** 1 to 9 are reserved, as in OpenShift SDN. */
const isVnid = (value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && (value === 0 || (value >= 10 && value <= maxVnid));

/** A file of nodes. */
export const nodeFileSchema = object({
  nodes: required(list(nodeSchema, 0, 10_000), "every node of the cluster, this one among them"),
  tenants: optional(tenants, "VNIDs of projects by their names", "none are kept there"),
});

type Written = Infer<typeof nodeFileSchema>;

/** Reads the text of such a file, YAML or JSON; `file` is for the messages only. */
export function readNodeFile(text: string, file: string): ReadDocument<NodeFile> {
  const read = readDocument(text, file, nodeFileSchema, checkTogether);
  if (read.t === "wrong") return read;
  const { nodes, tenants: vnids } = read.value;
  return {
    t: "ok",
    value: {
      nodes: new Map(nodes.map((node) => [node.name, node])),
      ...(vnids === undefined ? {} : { tenants: new Map(Object.entries(vnids)) }),
    },
  };
}

/** Finds contradictions between nodes. */
function checkTogether({ nodes }: Written, findings: Findings): void {
  const places = new Map(nodes.map((node, i) => [node, ["nodes", i]]));
  const names = new Set<string>();
  for (const [node, at] of places) {
    if (names.has(node.name)) findings.add([...at, "name"], `"${node.name}" for the second time`);
    names.add(node.name);
    for (const key of ["addresses", "subnets"] as const) {
      const [first, second] = node[key].map((entry) => ("ip" in entry ? entry.ip.family : entry.family));
      if (first !== undefined && first === second)
        findings.add([...at, key], "two of one family, wanted one of IPv4 and one of IPv6");
    }
  }
  for (const { node, is } of conflictsAmong(nodes)) findings.add(places.get(node) ?? ["nodes"], `with ${is}`);
}

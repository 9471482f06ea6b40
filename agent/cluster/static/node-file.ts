import type { ReadText } from "../../config/followed-file.ts";
import { readDocument } from "../../config/read-document.ts";
import type { Shape, Shaped, ShapeProblem } from "../../config/yaml-shape.ts";
import { conflictsAmong } from "../clashes.ts";
import type { ClusterNode } from "../node-registry.ts";
import { type NodeText, nodeOfText, nodeTextShape } from "../node-text.ts";
import { isProjectName } from "../project-name.ts";

/** What a file of nodes says. */
export interface NodeFile {
  readonly nodes: ReadonlyMap<string, ClusterNode>;
  /** VNIDs of projects; absent where the file keeps none. */
  readonly tenants?: ReadonlyMap<string, number>;
}

/** Five thousand nodes with all their keys are 1.2 MiB. */
export const maxNodeFileBytes = 4 * 1024 * 1024;

const maxVnid = 2 ** 24 - 1;

const tenants: Shape = {
  t: "foreign",
  wanted: "a map from names of projects to VNIDs: 0, or 10 to 16777215, each but 0 for few projects",
  wrong: (value) => {
    const strange = Object.entries(value).find(([project, vnid]) => !isProjectName(project) || !isVnid(vnid));
    return strange === undefined ? undefined : `"$.${strange[0]}" is ${JSON.stringify(strange[1])}`;
  },
};

/** 1 to 9 are kept back, as OpenShift SDN does it. */
const isVnid = (value: unknown): boolean =>
  typeof value === "number" && Number.isInteger(value) && (value === 0 || (value >= 10 && value <= maxVnid));

/** Every key of a file of nodes. */
const fileShape: Shape = {
  t: "map",
  required: ["nodes"],
  keys: { nodes: { t: "list", of: nodeTextShape, least: 0, most: 10_000 }, tenants },
};

interface RawFile {
  readonly nodes: readonly NodeText[];
  readonly tenants?: Readonly<Record<string, number>>;
}

/** Reads the text of such a file, YAML or JSON; `file` is for the messages only. */
export function readNodeFile(text: string, file: string): ReadText<NodeFile> {
  const read = readDocument(text, file, fileShape, contradictions);
  if (read.t === "wrong") return read;
  const raw = read.value as RawFile;
  return {
    t: "ok",
    value: {
      nodes: new Map(raw.nodes.map((node) => [node.name, nodeOfText(node)])),
      ...(raw.tenants === undefined ? {} : { tenants: new Map(Object.entries(raw.tenants)) }),
    },
  };
}

/** Faults that no single value shows. */
function contradictions(shaped: Shaped): ShapeProblem[] {
  const problems: ShapeProblem[] = [];
  const say = (path: string, text: string): void => {
    problems.push({ offset: shaped.offsets.get(path) ?? 0, text: `"${path}" is ${text}` });
  };
  const nodes = (shaped.value as RawFile).nodes.map(nodeOfText);
  const places = new Map(nodes.map((node, i) => [node, `nodes[${i}]`]));
  const names = new Set<string>();
  for (const [node, at] of places) {
    if (names.has(node.name)) say(`${at}.name`, `"${node.name}" for the second time, wanted another name`);
    names.add(node.name);
    for (const key of ["addresses", "subnets"] as const) {
      const [first, second] = node[key].map((entry) => ("ip" in entry ? entry.ip.family : entry.family));
      if (first !== undefined && first === second)
        say(`${at}.${key}`, "two of one family, wanted one of IPv4 and one of IPv6");
    }
  }
  for (const { node, is } of conflictsAmong(nodes)) say(places.get(node) ?? "nodes", `with ${is}, wanted its own`);
  return problems;
}

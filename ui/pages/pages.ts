import type { ComponentType } from "preact";
import type { Route } from "../route.ts";
import { about } from "../stream/connection.ts";
import { topicOf } from "../stream/store.ts";
import { Addresses } from "./addresses.tsx";
import { Doctor } from "./doctor.tsx";
import { MapPage } from "./map.tsx";
import { Overview } from "./overview.tsx";
import { isPipelineThere, Pipeline, pipelineNode } from "./pipeline.tsx";
import { isPolicyThere, Policies } from "./policies.tsx";
import { isTraceThere, Trace } from "./trace.tsx";

export interface PageEntry {
  readonly name: string;
  readonly title: string;
  readonly view: ComponentType;
  /** The documents that it shows. */
  readonly topics: (route: Route) => readonly string[];
  /** What is not there is not offered; absent: it always is. */
  readonly isThere?: () => boolean;
}

function flowTopics({ query: { table = "" } }: Route): readonly string[] {
  const node = pipelineNode();
  if (node === "") return [];
  return [`${node}/flows`, ...(table === "" ? [] : [`${node}/flows/${encodeURIComponent(table)}`])];
}

function addressTopics({ query: { node = "", address = "" } }: Route): readonly string[] {
  const history = node === "" || address === "" ? [] : [topicOf(node, "history", address)];
  return ["*/addresses", node === "" ? "*/leases" : `${node}/leases`, ...history];
}

/** Somebody may have no right to look at nodes. */
const areNodesThere = (): boolean => about.value?.withoutNodes === undefined;

/** The page's views, in the order of their entries. */
export const pages: readonly PageEntry[] = [
  {
    name: "overview",
    title: "Overview",
    view: Overview,
    topics: () => ["*/node", "*/addresses", "*/findings", "*/calls"],
    isThere: areNodesThere,
  },
  {
    name: "map",
    title: "Map",
    view: MapPage,
    topics: () => ["*/node", "*/pods", "*/peers"],
    isThere: areNodesThere,
  },
  {
    name: "addresses",
    title: "Addresses",
    view: Addresses,
    topics: addressTopics,
    isThere: areNodesThere,
  },
  { name: "pipeline", title: "Pipeline", view: Pipeline, topics: flowTopics, isThere: isPipelineThere },
  {
    name: "policies",
    title: "Policies",
    view: Policies,
    topics: () => ["*/policies", "*/pods"],
    isThere: isPolicyThere,
  },
  { name: "trace", title: "Trace", view: Trace, topics: () => ["*/pods"], isThere: isTraceThere },
  { name: "doctor", title: "Doctor", view: Doctor, topics: () => ["*/findings", "*/calls"], isThere: areNodesThere },
];

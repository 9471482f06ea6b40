/** Parts of what commands print with `--json`, as far as the page shows them. Each is looked at before it is used. */

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const text = (value: unknown): string => (typeof value === "string" ? value : "");
const texts = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
const number = (value: unknown): number => (typeof value === "number" ? value : 0);
const objects = (value: unknown): readonly Record<string, unknown>[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

export interface TraceStep {
  readonly table: string;
  readonly match: string;
  readonly decided: readonly string[];
}

/** `pipette trace --json` */
export interface TraceAnswer {
  readonly client: string;
  readonly server: string;
  readonly steps: readonly TraceStep[];
  readonly isDropped: boolean;
  readonly verdict: string;
  readonly next: string;
}

export function readTrace(json: unknown): TraceAnswer | undefined {
  if (!isObject(json) || !isObject(json["verdict"])) return undefined;
  const { verdict } = json;
  return {
    client: text(json["client"]),
    server: text(json["server"]),
    steps: objects(json["steps"]).map(({ name, flow, decided }) => ({
      table: text(name),
      match: isObject(flow) ? text(flow["matchInWords"]) : "no flow matched",
      decided: texts(decided),
    })),
    isDropped: isObject(verdict) && verdict["t"] === "dropped",
    verdict: isObject(verdict) ? text(verdict["text"]) : "",
    next: text(json["next"]),
  };
}

/** What one node has decided about a packet that was followed. */
export interface FollowedNode {
  readonly node: string;
  readonly dataPath: string;
  readonly steps: readonly { readonly table: string; readonly action: string; readonly text: string }[];
}

/** `pipette trace --inject -o json`, and `--live` */
export interface FollowedAnswer {
  readonly source: string;
  readonly destination: string;
  readonly nodes: readonly FollowedNode[];
  /** `delivered`, `dropped` and so on. */
  readonly end: string;
  readonly verdict: string;
  /** The last place where somebody has seen it. */
  readonly lastSeen: string;
  readonly remarks: readonly string[];
}

export function readFollowed(json: unknown): FollowedAnswer | undefined {
  if (!isObject(json) || json["kind"] !== "trace" || !isObject(json["verdict"])) return undefined;
  const { verdict, lastSeenAt, failures } = json;
  const last = isObject(lastSeenAt) ? lastSeenAt : undefined;
  return {
    ...{ source: text(json["source"]), destination: text(json["destination"]) },
    nodes: objects(json["nodes"]).map(({ node, dataPath, steps }) => ({
      ...{ node: text(node), dataPath: text(dataPath) },
      steps: objects(steps).map((one) => ({
        table: text(one["table"]),
        action: text(one["action"]),
        text: text(one["text"]),
      })),
    })),
    ...{ end: text(verdict["t"]), verdict: text(verdict["text"]) },
    lastSeen:
      last === undefined ? "" : `node ${text(last["node"])}, table ${text(last["table"])}: ${text(last["text"])}`,
    remarks: [
      ...texts(json["remarks"]),
      ...objects(failures).map((one) => `${text(one["node"])}: ${text(one["reason"])}`),
    ],
  };
}

/** `pipette policy matrix --json` */
export interface MatrixAnswer {
  readonly groups: readonly { readonly name: string; readonly pods: readonly string[] }[];
  readonly rows: readonly string[];
  readonly partly: ReadonlyMap<string, string>;
  readonly omitted: number;
}

export function readMatrix(json: unknown): MatrixAnswer | undefined {
  if (!isObject(json) || !Array.isArray(json["groups"])) return undefined;
  return {
    groups: objects(json["groups"]).map(({ name, pods }) => ({ name: text(name), pods: texts(pods) })),
    rows: texts(json["rows"]),
    partly: new Map(objects(json["partly"]).map(({ from, to, refused }) => [`${from} ${to}`, text(refused)])),
    omitted: number(json["omitted"]),
  };
}

/** `pipette policy why --json` */
export interface WhyAnswer {
  readonly allowed: string;
  readonly sentence: string;
  readonly cases: readonly {
    readonly ports: string;
    readonly isAllowed: boolean;
    readonly sides: readonly { readonly says: string; readonly rules: readonly string[] }[];
  }[];
}

export function readWhy(json: unknown): WhyAnswer | undefined {
  if (!isObject(json) || typeof json["sentence"] !== "string") return undefined;
  const rule = (is: string) => (each: Record<string, unknown>) =>
    `${text(each["policy"])} ${text(each["place"])}: ${is}${text(each["allows"])}`;
  return {
    allowed: text(json["allowed"]),
    sentence: json["sentence"],
    cases: objects(json["cases"]).map(({ ports, allowed, egress, ingress }) => ({
      ports: text(ports),
      isAllowed: allowed === true,
      sides: [egress, ingress].filter(isObject).map(({ says, allowedBy, otherPort, otherPeer }) => ({
        says: text(says),
        rules: [
          ...objects(allowedBy).map(rule("")),
          ...objects(otherPort).map(rule("close, but another port: ")),
          ...objects(otherPeer).map(rule("close, but another peer: ")),
        ],
      })),
    })),
  };
}

/** `pipette policy what-if --json` */
export interface WhatIfAnswer {
  readonly opened: number;
  readonly closed: number;
  readonly changes: readonly {
    readonly change: string;
    readonly from: string;
    readonly to: string;
    readonly ports: string;
    readonly pairs: number;
  }[];
}

export function readWhatIf(json: unknown): WhatIfAnswer | undefined {
  if (!isObject(json) || !Array.isArray(json["changes"])) return undefined;
  return {
    opened: number(json["opened"]),
    closed: number(json["closed"]),
    changes: objects(json["changes"]).map(({ change, from, to, ports, pairs }) => ({
      change: text(change),
      from: text(from),
      to: text(to),
      ports: text(ports),
      pairs: number(pairs),
    })),
  };
}

/** `pipette doctor --repair --json` */
export interface RepairAnswer {
  readonly repaired: readonly { readonly what: string; readonly done: string; readonly error: string }[];
  readonly left: number;
}

export function readRepair(json: unknown): RepairAnswer | undefined {
  if (!isObject(json) || !Array.isArray(json["findings"])) return undefined;
  return {
    repaired: objects(json["repaired"]).map(({ what, done, error }) => ({
      what: text(what),
      done: text(done),
      error: text(error),
    })),
    left: json["findings"].length,
  };
}

/** What is repairable of `pipette doctor --json`. */
export const readRepairable = (json: unknown): readonly { readonly what: string; readonly todo: string }[] =>
  !isObject(json)
    ? []
    : objects(json["findings"])
        .filter(({ repairable }) => repairable === true)
        .map(({ what, todo }) => ({ what: text(what), todo: text(todo) }));

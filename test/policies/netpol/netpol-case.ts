import type { ApiObject } from "../../../shared/kubernetes/mod.ts";
import { type Labels, type Pod, readPod, readPolicy } from "../../../shared/policy/mod.ts";
import type { World } from "../node-policies.ts";

/** A policy's namespace and spec. */
export type PolicyIn = readonly [namespace: string, spec: ApiObject];

/**
 * Who reaches whom, by three texts: what x/a, x/b and x/c reach, then what those of y do, then of z. Each of the three
 * words of a text has a sign for each of the nine, x/a first: "." reached, "#" not, "-" itself, which no case is about.
 */
export type Reached = readonly [string, string, string];

interface Look {
  readonly port: 80 | 81;
  /** TCP where it is not said. */
  readonly protocol?: "UDP" | "SCTP";
  readonly reached: Reached;
}

/** A state of the cluster, and what is found then. */
export interface Step {
  /** All that there are; with addresses of pods where they have blocks. */
  readonly policies: readonly PolicyIn[] | ((ipOf: (pod: string) => string) => readonly PolicyIn[]);
  /** Labels that pods ("x/a") and namespaces ("x") have beside their own. */
  readonly labels?: Readonly<Record<string, Labels>>;
  readonly looks: readonly Look[];
}

/** A case of the suite of Kubernetes' network policies, with our own objects. */
export interface NetpolCase {
  readonly name: string;
  readonly steps: readonly [Step, ...Step[]];
}

const namespaces = ["x", "y", "z"];
export const nine = namespaces.flatMap((namespace) => ["a", "b", "c"].map((name) => `${namespace}/${name}`));

export const everybody: Reached = [
  "-........ .-....... ..-......",
  "...-..... ....-.... .....-...",
  "......-.. .......-. ........-",
];

/** Nobody reaches the pods of x. */
export const noneIntoX: Reached = [
  "-##...... #-#...... ##-......",
  "###-..... ###.-.... ###..-...",
  "###...-.. ###....-. ###.....-",
];

/** Nobody reaches x/a. */
export const noneIntoXa: Reached = [
  "-........ #-....... #.-......",
  "#..-..... #...-.... #....-...",
  "#.....-.. #......-. #.......-",
];

/** x/a reaches nobody. */
export const noneFromXa: Reached = [
  "-######## .-....... ..-......",
  "...-..... ....-.... .....-...",
  "......-.. .......-. ........-",
];

/** Whether the table says that one reaches another; `undefined` for itself. */
export function isReached(reached: Reached, from: string, to: string): boolean | undefined {
  const rows = reached.flatMap((text) => text.split(" "));
  const sign = rows[nine.indexOf(from)]?.[nine.indexOf(to)];
  if (sign === "-" && from === to) return undefined;
  if (sign !== "." && sign !== "#") throw new Error(`from ${from} to ${to} the table has "${sign}"`);
  return sign === ".";
}

const served = [80, 81].flatMap((containerPort) =>
  ["TCP", "UDP", "SCTP"].map((protocol) => ({
    name: `serve-${containerPort}-${protocol.toLowerCase()}`,
    containerPort,
    protocol,
  })),
);

/** Where the nine pods are. */
export interface Places {
  nodeOf(pod: string): string;
  ipsOf(pod: string): readonly string[];
}

/** @param family of the addresses that policies have */
export function worldOf({ policies, labels = {} }: Step, { nodeOf, ipsOf }: Places, family: 4 | 6 = 4): World {
  const ipOf = (key: string): string => ipsOf(key).find((ip) => ip.includes(":") === (family === 6)) ?? "";
  const list = typeof policies === "function" ? policies(ipOf) : policies;
  return {
    pods: nine.map((key): Pod => {
      const [namespace = "", name = ""] = key.split("/");
      return readable(
        readPod({
          metadata: { namespace, name, uid: key, labels: { pod: name, ...labels[key] } },
          spec: { nodeName: nodeOf(key), containers: [{ ports: served }] },
          status: { podIPs: ipsOf(key).map((ip) => ({ ip })) },
        }),
      );
    }),
    policies: list.map(([namespace, spec], i) =>
      readable(readPolicy({ metadata: { namespace, name: `policy-${i}`, uid: `policy-${i}` }, spec })),
    ),
    namespaces: new Map(
      namespaces.map((name) => [name, { ns: name, "kubernetes.io/metadata.name": name, ...labels[name] }]),
    ),
  };
}

function readable<T>(object: T | undefined): T {
  if (object === undefined) throw new Error("an object of a case cannot be read");
  return object;
}

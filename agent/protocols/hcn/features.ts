import { isDocument } from "./documents.ts";

/** As `GET /globals/version` answers it. */
export interface HcnVersion {
  readonly major: number;
  readonly minor: number;
  readonly text: string;
}

/** What this version of HNS can do for services. */
export interface HcnFeatures {
  /** Of HNS, such as `13.3`. */
  readonly version: string;
  /** Endpoints answer clients themselves, without a port of the node for each connection (direct server return). */
  readonly dsr: boolean;
  /** On an L2Bridge network. */
  readonly dualStack: boolean;
  /** Other nodes' subnets on an overlay. */
  readonly remoteSubnet: boolean;
  readonly sessionAffinity: boolean;
  /** Changes a load balancer in place. Versions before answer success and change nothing. */
  readonly modifyLoadBalancer: boolean;
}

type Range = readonly [from: readonly [major: number, minor: number], to: readonly [major: number, minor: number]];

const last = Number.POSITIVE_INFINITY;
const since = (major: number, minor: number): Range => [
  [major, minor],
  [last, last],
];
const within = (major: number, minor: number): Range => [
  [major, minor],
  [major, last],
];

/** Features were brought to older releases too, so they are ranges and not first versions (microsoft/hcsshim, hcn/hcnglobals.go). */
const ranges = {
  dsr: [within(9, 3), since(10, 2)],
  dualStack: [since(11, 10)],
  remoteSubnet: [since(9, 2)],
  sessionAffinity: [since(12, 0)],
  // 15.4 answers success and changes nothing.
  modifyLoadBalancer: [within(15, 5), since(16, 0)],
} as const satisfies Readonly<Record<Exclude<keyof HcnFeatures, "version">, readonly Range[]>>;

/** `undefined` where it is none. */
export function readVersion(output: unknown): HcnVersion | undefined {
  if (!isDocument(output)) return undefined;
  const { Major: major, Minor: minor } = output;
  if (typeof major !== "number" || typeof minor !== "number") return undefined;
  return { major, minor, text: `${major}.${minor}` };
}

export function featuresOf(version: HcnVersion): HcnFeatures {
  const has = (name: keyof typeof ranges): boolean =>
    ranges[name].some(([from, to]) => !isBefore(version, from) && !isBehind(version, to));
  return {
    version: version.text,
    dsr: has("dsr"),
    dualStack: has("dualStack"),
    remoteSubnet: has("remoteSubnet"),
    sessionAffinity: has("sessionAffinity"),
    modifyLoadBalancer: has("modifyLoadBalancer"),
  };
}

type Edge = readonly [major: number, minor: number];
const isBefore = (version: HcnVersion, [major, minor]: Edge): boolean =>
  version.major < major || (version.major === major && version.minor < minor);
const isBehind = (version: HcnVersion, [major, minor]: Edge): boolean =>
  version.major > major || (version.major === major && version.minor > minor);

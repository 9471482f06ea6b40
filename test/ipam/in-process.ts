import { expect } from "vitest";
import { Allocator, runIpamPlugin } from "../../ipam/mod.ts";
import { scratchDir } from "../support/scratch-dir.ts";

/** What one call of `pipette-ipam` left: its exit status, and what was on stdout, read as JSON. */
export interface Outcome {
  readonly status: number;
  /** `undefined` where nothing was written. */
  readonly out: Record<string, unknown> | undefined;
}

/** One call in this process: environment and standard input in, whatever it is, an outcome out. */
export async function callInProcess(env: Readonly<Record<string, string>>, stdin: unknown): Promise<Outcome> {
  const written: string[] = [];
  const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
  const status = await runIpamPlugin({
    env,
    readStdin: async () => new TextEncoder().encode(text),
    writeResult: async (line) => void written.push(line),
    log: () => undefined,
  });
  expect(written.length).toBeLessThanOrEqual(1);
  return { status, out: written[0] === undefined ? undefined : JSON.parse(written[0]) };
}

interface CallOptions {
  /** Container id; `c1` when not given. */
  readonly id?: string;
  /** CNI_ARGS. */
  readonly args?: string;
  /** More of the environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Beside the `ipam` section. */
  readonly top?: object;
}

/** A node with an empty data directory, and the verbs on its network `net`. */
export function ipamNode() {
  const scratch = scratchDir();
  const dataDir = `${scratch.path}/data`;
  const call = (verb: string, ipam: unknown, { id = "c1", args = "", env = {}, top = {} }: CallOptions = {}) => {
    const variables = {
      CNI_CONTAINERID: id,
      CNI_NETNS: "/run/netns/none",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
    };
    const section = typeof ipam === "object" && ipam !== null ? { type: "pipette-ipam", dataDir, ...ipam } : ipam;
    const conf = { cniVersion: "1.0.0", name: "net", type: "bridge", ...top, ipam: section };
    return callInProcess({ CNI_COMMAND: verb, CNI_ARGS: args, ...variables, ...env }, conf);
  };
  /** The addresses of an ADD that must succeed. */
  const add = async (ipam: unknown, options?: CallOptions): Promise<readonly string[]> => {
    const { status, out } = await call("ADD", ipam, options);
    expect({ status, out }).toMatchObject({ status: 0 });
    const { ips = [] } = out as { ips?: { address: string }[] };
    return ips.map(({ address }) => address.replace(/\/.*/, ""));
  };
  /** The error of a call that must fail: its code, then its text. */
  const refused = async (verb: string, ipam: unknown, options?: CallOptions): Promise<string> => {
    const { status, out } = await call(verb, ipam, options);
    expect({ status, out }).toMatchObject({ status: 1, out: { cniVersion: expect.any(String) } });
    return `${out?.["code"]}: ${out?.["msg"]} (${out?.["details"]})`;
  };
  /** Every lease: address, sandbox, state. */
  const leases = async (): Promise<readonly string[]> => {
    using allocator = await Allocator.openExisting(dataDir);
    return (allocator?.list() ?? []).map(({ owner, state }) => `${owner.sandboxId} ${state}`);
  };
  return { path: scratch.path, dataDir, call, add, refused, leases, [Symbol.dispose]: () => scratch[Symbol.dispose]() };
}

export type IpamNode = ReturnType<typeof ipamNode>;

/** One thing that host-local does, by its number in host-local.md beside this file. */
export type Rule = readonly [number: number, says: string, holds: (node: IpamNode) => Promise<void>];

/** Five addresses, 10.0.0.2 to 10.0.0.6. */
export const five = { ranges: [[{ subnet: "10.0.0.0/29" }]] };
export const dual = { ranges: [[{ subnet: "10.0.0.0/29" }], [{ subnet: "fd00::/64" }]] };

import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { surroundingsOf } from "../../cni/surroundings.ts";
import { verbsIn } from "../../cni/verbs.ts";
import { Allocator, parseIpamConfig } from "../../ipam/mod.ts";
import { runPlugin } from "../../shared/cni/dispatch.ts";
import { Fields } from "../../shared/schema/json-fields.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { type Agent, type Asked, present } from "./agent-calls.ts";

/**
 * A node for the plugin in this process: its verbs, a store and another IPAM plugin are real, the agent is what the test
 * says. Whoever uses it puts agent-calls.ts in the place of `shared/rpc/call.ts`.
 */

/** An answer of the agent to ADD, CHECK or DEL. */
export const result = (text = ""): unknown => ({ cniResult: new TextEncoder().encode(text) });
export const refused = (code: number, message: string): unknown => ({
  cniResult: new Uint8Array(0),
  error: { code, message, details: [] },
});

export const podResult =
  '{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/29","interface":0}],"interfaces":[{"name":"eth0","sandbox":"/run/netns/a"}]}';

export interface Ended {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the result or the error, read
  readonly out: any;
  /** What came on standard error, a line each. */
  readonly log: readonly string[];
}

export class PluginNode implements Disposable {
  readonly #scratch = scratchDir();
  readonly dataDir = `${this.#scratch.path}/data`;
  readonly bin = `${this.#scratch.path}/bin`;
  readonly asked: readonly Asked[];
  /** Of the network "n", whose addresses are 10.0.0.2 to 10.0.0.6. */
  readonly own = { type: "pipette-ipam", dataDir: this.dataDir, subnet: "10.0.0.0/29" };

  constructor(agent: Agent = () => result()) {
    present.asked = [];
    this.asked = present.asked;
    this.serve(agent);
  }

  /** From now on the agent does this. */
  serve(agent: Agent): void {
    present.agent = agent;
  }

  /** One call of the plugin as the runtime makes it; with `args` as the small program in front leaves it. */
  async call(
    command: string,
    conf: object = {},
    env: Readonly<Record<string, string>> = {},
    end = "",
    args: readonly string[] = [],
  ): Promise<Ended> {
    const variables = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: "/run/netns/a",
      CNI_IFNAME: "eth0",
      CNI_PATH: this.bin,
      CNI_ARGS: "",
      PATH: process.env["PATH"] ?? "",
      ...env,
    };
    const whole = { cniVersion: "1.1.0", name: "n", type: "pipette", socket: "/run/a.sock", ...conf };
    const text = `${JSON.stringify({ dataDir: this.dataDir, ipam: this.own, ...whole })}${end}`;
    let out = "";
    const log: string[] = [];
    const status = await runPlugin(verbsIn(surroundingsOf(args)), {
      env: variables,
      readStdin: async () => new TextEncoder().encode(text),
      writeResult: async (written) => {
        out += written;
      },
      log: (line) => void log.push(line),
    });
    return { status, out: out === "" ? undefined : JSON.parse(out), log };
  }

  /** Takes an address the way the agent does during an ADD. */
  async lease(sandboxId = "c1"): Promise<void> {
    using allocator = await Allocator.open(this.dataDir);
    const conf = new Fields({ ipam: this.own });
    const config = parseIpamConfig({ conf, network: "n", version: "1.1.0", args: "" });
    allocator.allocate({ network: "n", sandboxId, ifname: "eth0" }, config);
  }

  /** `sandbox: state` of every lease, and `sandbox: departing` of every detach that is on record. */
  async kept(): Promise<readonly string[]> {
    using allocator = await Allocator.openExisting(this.dataDir);
    if (allocator === undefined) return [];
    const leases = allocator.list().map(({ owner, state }) => `${owner.sandboxId}: ${state}`);
    return [...leases, ...allocator.pendingDetaches().map(({ sandboxId }) => `${sandboxId}: departing`)];
  }

  /** Puts another IPAM plugin into CNI_PATH: a shell script, which notes its calls. */
  plugin(name: string, body: string): { readonly type: string } {
    mkdirSync(this.bin, { recursive: true });
    writeFileSync(`${this.bin}/${name}`, `#!/bin/sh\necho $CNI_COMMAND >>${this.bin}/calls\n${body}\n`);
    chmodSync(`${this.bin}/${name}`, 0o755);
    return { type: name };
  }

  /** The verbs that scripts were called with. */
  get delegated(): readonly string[] {
    const path = `${this.bin}/calls`;
    return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
  }

  [Symbol.dispose](): void {
    this.#scratch[Symbol.dispose]();
  }
}

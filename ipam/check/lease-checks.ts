import { ifnameRule, wrongContainerId, wrongIfname, wrongNetworkName } from "../../shared/cni/names.ts";
import { bitsOf, formatIp, sameIp } from "../../shared/net/ip.ts";
import type { Intervals } from "../config/intervals.ts";
import { intervalAt } from "../config/intervals.ts";
import type { Lease } from "../lease.ts";
import type { Finding, FindingCode } from "./finding.ts";

/** What a check needs besides the database. */
export interface CheckContext {
  readonly nowMs: number;
  /** Empty: unknown. */
  readonly bootId: string;
  /** The generation that was given last. */
  readonly generation: number;
  /** Of one network, where its configuration is at hand. */
  readonly ranges?: { readonly network: string; readonly windows: Intervals; readonly reserved: Intervals };
}

/** Longer than clocks usually differ, and than an agent takes to finish a DEL. */
const aheadMs = 60_000;
const longMs = 10 * 60_000;

interface LeaseCheck extends Pick<Finding, "severity" | "why" | "todo" | "repairable"> {
  readonly code: FindingCode;
  /** Says what is wrong with the leases: "with times that lie ahead". */
  readonly what: string;
  readonly applies: (lease: Lease, context: CheckContext) => boolean;
}

/** What can be wrong with a lease by itself. */
export const leaseChecks: readonly LeaseCheck[] = [
  {
    code: "generation-behind",
    severity: "error",
    what: "with generations that were never counted",
    applies: ({ generation }, context) => generation > context.generation || generation < 1,
    why: "A later lease can get the same generation, and a late DEL can then free the wrong one",
    todo: 'run "pipette ipam check --repair", which counts on from the highest one',
    repairable: true,
  },
  {
    code: "gateway-given",
    severity: "error",
    what: "on the address of a gateway",
    applies: ({ address, gateway, state }) =>
      state === "allocated" && gateway !== undefined && sameIp(address.ip, gateway),
    why: "Two machines answer to one address, and the network has no way out",
    todo: "remove these pods, and exclude the gateway's address where another part of the configuration gives it out",
  },
  {
    code: "wrong-name",
    severity: "warning",
    what: "with owners whose names no runtime gives",
    // The oldest format of host-local has no interface names.
    applies: ({ owner }) =>
      wrongNetworkName(owner.network) !== undefined ||
      wrongContainerId(owner.sandboxId) !== undefined ||
      (owner.ifname !== "" && wrongIfname(owner.ifname) !== undefined),
    why: `No DEL can name them (an interface has ${ifnameRule}), so they stay`,
    todo: 'look with "pipette ipam show ADDRESS" and release them with "pipette ipam release ADDRESS --force"',
  },
  {
    code: "wrong-prefix",
    severity: "warning",
    what: "with prefix lengths that their family has not",
    applies: ({ address }) => address.prefix < 0 || address.prefix > bitsOf(address.ip.family),
    why: "An ADD that is repeated would answer an address that nobody can configure",
    todo: "remove these pods; find out who wrote into the database",
  },
  {
    code: "time-ahead",
    severity: "note",
    what: "with times that lie ahead",
    applies: ({ allocatedAtMs, releasedAtMs = 0 }, { nowMs }) =>
      Math.max(allocatedAtMs, releasedAtMs) > nowMs + aheadMs,
    why: "The clock was set back since: what cools does so for longer, and is given out all the same where nothing else is free",
    todo: "nothing, where the clock is right now",
  },
  {
    code: "earlier-boot",
    severity: "note",
    what: "allocated before the last boot",
    applies: ({ state, bootId }, context) =>
      state === "allocated" && bootId !== "" && context.bootId !== "" && bootId !== context.bootId,
    why: "Their sandboxes are gone unless the runtime brought them back; the addresses stay out of use meanwhile",
    todo: 'nothing where an agent runs; else "pipette ipam gc" with what the runtime lists',
  },
  {
    code: "long-releasing",
    severity: "warning",
    what: "releasing for over 10 minutes",
    applies: ({ state, releasedAtMs = 0 }, { nowMs }) => state === "releasing" && nowMs - releasedAtMs > longMs,
    why: "Their interfaces may stand, and their addresses stay out of use",
    todo: 'start the agent, which finishes them ("pipette status"); without one "pipette ipam release ADDRESS --force"',
  },
  {
    code: "outside-ranges",
    severity: "note",
    what: "in no range of the configuration",
    applies: ({ owner, address }, { ranges }) =>
      ranges?.network === owner.network && intervalAt(ranges.windows, address.ip) === undefined,
    why: "The ranges have changed since; these pods keep their addresses until they go",
    todo: "nothing, where the change was meant",
  },
  {
    code: "reserved-address",
    severity: "note",
    what: "on addresses that are a gateway's or excluded now",
    applies: ({ owner, address, state }, { ranges }) =>
      ranges?.network === owner.network && state !== "cooling" && intervalAt(ranges.reserved, address.ip) !== undefined,
    why: "Whoever the address was kept for may use it already, while a pod has it",
    todo: "remove these pods",
  },
];

const maxExamples = 3;

/** Groups leases by finding, so that a thousand alike are reported once. */
export class LeaseChecker {
  readonly #context: CheckContext;
  readonly #found = new Map<string, { check: LeaseCheck; network: string; examples: string[]; count: number }>();

  /** Networks that have a lease. */
  readonly networks = new Set<string>();

  constructor(context: CheckContext) {
    this.#context = context;
  }

  look(lease: Lease): void {
    this.networks.add(lease.owner.network);
    for (const check of leaseChecks) {
      if (!check.applies(lease, this.#context)) continue;
      const { network } = lease.owner;
      const key = `${check.code} ${network}`;
      const found = this.#found.get(key) ?? { check, network, examples: [], count: 0 };
      this.#found.set(key, found);
      found.count++;
      if (found.examples.length < maxExamples) found.examples.push(`"${formatIp(lease.address.ip)}"`);
    }
  }

  findings(): readonly Finding[] {
    return [...this.#found.values()].map(({ check, network, examples, count }) => {
      const { code, severity, why, todo, repairable } = check;
      const others = count > examples.length ? ` and ${count - examples.length} more` : "";
      const what = `${count} ${count === 1 ? "lease" : "leases"} of network "${network}" ${check.what}: ${examples.join(", ")}${others}`;
      return { severity, code, network, what, why, todo, ...(repairable === undefined ? {} : { repairable }) };
    });
  }
}

import type { AgentConfig } from "../../config/agent-config.ts";
import { addressFindings } from "./address-findings.ts";
import { agentFindings } from "./agent-findings.ts";
import { attachmentFindings } from "./attachment-findings.ts";
import { type Finding, keyOf, sorted } from "./finding.ts";
import { fileFindings, leftoverFindings } from "./leftover-findings.ts";
import type { NodeSnapshot } from "./node-snapshot.ts";
import type { RuntimeList } from "./runtime-list.ts";
import { singleLookFindings } from "./single-look-findings.ts";
import { type TakenSnapshot, takeSnapshot } from "./take-snapshot.ts";

export interface Diagnosis {
  /** The worst first. */
  readonly findings: readonly Finding[];
  /** What was compared. */
  readonly leases: number;
  readonly interfaces: number;
}

/** A finding as programs get it. */
export const findingView = ({ repair, evidence: _evidence, ...finding }: Finding) => ({
  ...finding,
  repairable: repair !== undefined,
});

export interface ExamineOptions {
  readonly runtime?: RuntimeList;
  /** The pause between two snapshots. */
  readonly pauseMs?: number;
  /** Takes a single snapshot, so that disagreements caused by running calls are reported too. */
  readonly once?: boolean;
}

/**
 * How many snapshots to take: within so many a running call has changed the state, on a busy node within the larger
 * number.
 */
const looks = { idle: 3, busy: 8, more: 2 };
const pauseMs = 700;

/**
 * Everything that disagrees on this node, or that keeps its pods from their network. Changes nothing. A disagreement is
 * reported if each of several snapshots has it with the same lease, interface, port or file, because calls continue
 * meanwhile.
 * @throws {CniError | NetlinkError} if this process has no permission to read the state
 */
export async function examine(config: AgentConfig, options: ExamineOptions = {}): Promise<Diagnosis> {
  const standing = await singleLookFindings(config);
  const { findings, last } = await lasting({
    look: () => lookAgain(config, options.runtime),
    wanted: ({ snapshot }) => (options.once ? 1 : isBusy(snapshot) ? looks.busy : looks.idle),
    pause: () => Bun.sleep(options.pauseMs ?? pauseMs),
  });
  const { leases, interfaces, agent } = last.snapshot;
  const all = sorted([...findings, ...standing]);
  return {
    findings: agent.t === "away" ? all.map(withoutAgent) : all,
    leases: leases?.length ?? 0,
    interfaces: interfaces?.length ?? 0,
  };
}

interface Looking<T> {
  readonly look: () => Promise<T>;
  /** In how many looks in a row a finding has to be, as the last one shows. */
  readonly wanted: (last: T) => number;
  readonly pause: () => Promise<void>;
}

/**
 * Looks again until each finding of the last look has been there in so many in a row, or can no longer get there. What
 * an earlier look did not have, or had under another code, since a source could not be read or a call was under way,
 * gets a few looks more: otherwise nothing would be said of it.
 */
export async function lasting<T extends Pick<TakenSnapshot, "findings">>({
  look,
  wanted,
  pause,
}: Looking<T>): Promise<{ readonly findings: readonly Finding[]; readonly last: T }> {
  let last = await look();
  let seen = new Map(last.findings.map((finding) => [keyOf(finding), 1]));
  for (let taken = 1; ; taken++) {
    const enough = wanted(last);
    const left = enough + looks.more - taken;
    if (enough === 1 || ![...seen.values()].some((times) => times < enough && times + left >= enough))
      return { findings: last.findings.filter((finding) => (seen.get(keyOf(finding)) ?? 0) >= enough), last };
    await pause();
    last = await look();
    seen = new Map(last.findings.map((finding) => [keyOf(finding), (seen.get(keyOf(finding)) ?? 0) + 1]));
  }
}

/** Without an agent, repairs that only it can do are left out. */
function withoutAgent({ repair, ...finding }: Finding): Finding {
  if (repair === undefined) return finding;
  if (repair.t !== "attachment" && repair.t !== "node") return { ...finding, repair };
  return { ...finding, todo: `start the agent first; then ${finding.todo}` };
}

const isBusy = ({ agent }: NodeSnapshot): boolean =>
  agent.t === "answers" && (agent.status.callsInFlight > 0 || agent.status.departing > 0);

async function lookAgain(config: AgentConfig, runtime: RuntimeList | undefined): Promise<TakenSnapshot> {
  const { snapshot, findings } = await takeSnapshot(config, runtime);
  const host = config.dataPath === "hns" ? [] : await (await import("./host-findings.ts")).hostFindings(config);
  const own = agentFindings(snapshot, config.socket);
  const told = new Set(host.map(({ what }) => what.toLowerCase()));
  return {
    snapshot,
    findings: [
      // Problems that were found here are not repeated in the agent's words.
      ...own.filter(({ what }) => !told.has(what.toLowerCase())),
      ...findings,
      ...host,
      ...attachmentFindings(snapshot),
      ...addressFindings(snapshot),
      ...leftoverFindings(snapshot),
      ...fileFindings(config, snapshot.nowMs),
    ],
  };
}

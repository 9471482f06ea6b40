/** One table that the packet came to. */
export interface Hop {
  readonly table: number;
  /** As ovs-ofctl writes it; empty for a flow that takes everything, and where none matched. */
  readonly match: string;
  /** Absent where no flow matched. */
  readonly priority: number | undefined;
  readonly cookie: bigint;
  /** What was done, in order, one action or remark to a line. */
  readonly lines: readonly TraceLine[];
}

/** `action`: as ovs-ofctl writes it. `note`: its result. `warning`: why it had none. */
export interface TraceLine {
  readonly t: "action" | "note" | "warning";
  readonly text: string;
}

/**
 * One pass through the pipeline: from where the packet enters, or returns from connection tracking, to where it leaves
 * or is looked up.
 */
export interface Pass {
  /** The packet as it came, in ovs-ofctl's words. */
  readonly flow: string;
  /** On the bridge where it came in. */
  readonly hops: readonly Hop[];
  /** Bridges that the tunnel's own packet passed after that, where Open vSwitch routes it itself. */
  readonly beyond: readonly string[];
  /** The packet as it went; `unchanged` where nothing was changed. */
  readonly finalFlow: string;
  /** What the data path does with such packets. */
  readonly datapathActions: string;
}

/** Bounds of what is read: far more than a packet can cause (4096 resubmissions, 64 levels). */
const maxLines = 200_000;

const hopLine = /^ *(\d{1,3})\. (.*)$/;
const matched = /^(?:(.*), )?priority (\d{1,5})(?:, cookie (0x[0-9a-f]{1,16}))?$/;
const bridgeLine = /^\s*bridge\("(.*)"\)$/;
const ruler = /^\s*-+$/;
const heads = {
  "Flow: ": "flow",
  "Final flow: ": "finalFlow",
  "Datapath actions: ": "datapathActions",
} as const;

interface OpenHop extends Hop {
  readonly lines: TraceLine[];
}
interface OpenPass {
  flow: string;
  readonly hops: OpenHop[];
  readonly bridges: string[];
  finalFlow: string;
  datapathActions: string;
}

/**
 * Reads what `ofproto/trace` prints: text for people, the only form that there is before Open vSwitch 3.4. Unknown
 * lines are ignored; a text without known lines gives no pass.
 */
export function parseTrace(text: string): readonly Pass[] {
  const passes: OpenPass[] = [];
  for (const line of text.split("\n", maxLines)) {
    const head = (Object.keys(heads) as (keyof typeof heads)[]).find((start) => line.startsWith(start));
    if (head === "Flow: ") passes.push({ flow: "", hops: [], bridges: [], finalFlow: "", datapathActions: "" });
    const pass = passes.at(-1);
    if (pass === undefined) continue;
    if (head !== undefined) pass[heads[head]] = line.slice(head.length).trim();
    else if (pass.finalFlow === "") readInside(pass, line);
  }
  return passes.map(({ bridges, ...pass }) => ({ ...pass, beyond: bridges.slice(1) }));
}

/** Lines between `Flow:` and `Final flow:`. */
function readInside(pass: OpenPass, line: string): void {
  const bridge = bridgeLine.exec(line)?.[1];
  if (bridge !== undefined) pass.bridges.push(bridge);
  if (bridge !== undefined || pass.bridges.length > 1 || ruler.test(line)) return;
  const start = hopLine.exec(line);
  const hop = pass.hops.at(-1);
  if (start !== null) pass.hops.push(hopOf(Number(start[1]), start[2] ?? ""));
  else if (hop !== undefined && line.trim() !== "") hop.lines.push(lineOf(line.trim()));
}

function hopOf(table: number, text: string): OpenHop {
  const found = matched.exec(text);
  if (found === null) return { table, match: "", priority: undefined, cookie: 0n, lines: [] };
  const [, match = "", priority, cookie = "0x0"] = found;
  return { table, match, priority: Number(priority), cookie: BigInt(cookie), lines: [] };
}

function lineOf(text: string): TraceLine {
  if (text.startsWith("-> ")) return { t: "note", text: text.slice(3) };
  const warning = /^>>(?:>>)? (.*?)(?: <<<<)?$/.exec(text);
  return warning === null ? { t: "action", text } : { t: "warning", text: warning[1] ?? "" };
}

/** The packet as it was in the end; empty where there is no pass. */
export function stateAfter(pass: Pass | undefined): string {
  if (pass === undefined) return "";
  return pass.finalFlow === "unchanged" ? pass.flow : pass.finalFlow;
}

/** The tunnel key of the packet, which the switch shows only in the action that sets it. */
export function tunnelKey(passes: readonly Pass[]): number {
  const lines = passes.flatMap(({ hops }) => hops.flatMap((hop) => hop.lines));
  const set = /^set_field:(0x[0-9a-f]+|\d+)->tun_id$|^NXM_NX_TUN_ID\[[\d.]*\] is now (0x[0-9a-f]+|\d+)$/;
  const keys = lines.map(({ text }) => set.exec(text)).filter((found) => found !== null);
  return Number(keys.at(-1)?.[1] ?? keys.at(-1)?.[2] ?? 0);
}

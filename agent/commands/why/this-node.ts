import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { paths } from "../../../shared/os/paths.ts";
import { hasSystemd } from "../../../shared/os/platform.ts";
import { parseJson } from "../../../shared/schema/json.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";
import type { AgentConfig } from "../../config/agent-config.ts";
import { openFiles, readText, unreadFile } from "../../config/read-config.ts";
import { runProgram } from "../../platform/run-program.ts";
import { examine } from "../doctor/examine.ts";

/** A sentence of this node about what is wrong, as `pipette why` takes it. */
interface SaidHere {
  readonly by: "agent" | "finding" | "log";
  readonly from: string;
  readonly text: string;
  readonly atMs?: number;
  readonly code?: string;
  readonly todo?: string;
  readonly isOfPod: false;
}

export interface ThisNodeOptions {
  /** Absent: the usual place. */
  readonly config?: string | undefined;
  /** Of the agent; absent: the journal. */
  readonly log?: string | undefined;
}

/** Lines of a log that are read, from its end. */
const logLines = 400;
const maxLogBytes = 256 * 1024;
const journalMs = 5_000;
/** Sentences of one kind that are told. */
const maxSaid = 20;

/** Looks at this node without an agent: at its configuration, at what the doctor finds, at the end of the agent's log. */
export function thisNode({ config: named, log }: ThisNodeOptions) {
  const config = named ?? paths.agentConfig;
  return {
    async look(what: "configuration" | "doctor" | "log"): Promise<readonly SaidHere[]> {
      if (what === "log") return saidInLog(await logText(log));
      // Whoever asks from a machine of their own has none, and nothing is wrong there.
      if (named === undefined && !existsSync(config))
        throw new Error(`there is no "${config}" here, wanted to be asked on a node of Pipette's`);
      const read = await configuration(config);
      if (what === "configuration") return read.wrong.map((text) => said("agent", `"${config}"`, text));
      if (read.config === undefined) throw new Error(read.wrong[0] ?? "there is no configuration to go by");
      const { findings } = await examine(read.config, { once: true });
      return findings
        .filter(({ severity }) => severity !== "note")
        .slice(0, maxSaid)
        .map(({ code, what: text, todo }) => ({ ...said("finding", `the doctor (${code})`, text), code, todo }));
    },
  };
}

const said = (by: SaidHere["by"], from: string, text: string): SaidHere => ({ by, from, text, isOfPod: false });

/** Invalid, or open to others: either way no agent starts with it. */
async function configuration(
  file: string,
): Promise<{ readonly config: AgentConfig | undefined; readonly wrong: readonly string[] }> {
  let stderr = "";
  const io = {
    stderr: (text: string) => {
      stderr += text;
    },
    stdout: () => undefined,
    stdin: async () => new Uint8Array(),
  };
  const config = await readText(file, { ...io, env: {}, stderrIsTerminal: false });
  const open = config === undefined ? [] : openFiles(file, config);
  return { config, wrong: [...stderr.split("\n").filter((line) => line !== ""), ...open] };
}

/** @throws {Error} where there is no log to read */
export async function logText(file: string | undefined): Promise<string> {
  if (file !== undefined) {
    try {
      return (await readFile(file)).subarray(-maxLogBytes).toString("utf8");
    } catch (caught) {
      throw new Error(`Cannot read "${file}": ${unreadFile(caught)}`, { cause: caught });
    }
  }
  if (!hasSystemd()) throw new Error("this node has no journal of the agent, wanted --log FILE");
  const args = ["-u", "pipette-agent", "-n", String(logLines), "-o", "cat", "--no-pager", "-q"];
  const { stdout, failure } = await runProgram("journalctl", args, {
    deadlineMs: journalMs,
    maxBytes: maxLogBytes * 4,
  });
  if (failure !== "") throw new Error(`journalctl: ${failure}`);
  return stdout;
}

/** Warnings and errors, the last first, each once; of an agent that could not begin it is a plain line. */
export function saidInLog(text: string): readonly SaidHere[] {
  const lines = text
    .split("\n")
    .filter((line) => line !== "")
    .slice(-logLines)
    .reverse();
  const found = new Map<string, SaidHere>();
  for (const line of lines) {
    const one = line.startsWith("{") ? fromJson(line) : plain(line);
    if (one !== undefined && !found.has(one.text)) found.set(one.text, one);
    if (found.size >= maxSaid) break;
  }
  return [...found.values()];
}

const plain = (line: string): SaidHere | undefined =>
  line.startsWith("Cannot ") ? said("log", "the agent's log", line) : undefined;

function fromJson(line: string): SaidHere | undefined {
  let value: unknown;
  try {
    value = parseJson(line);
  } catch {
    return undefined;
  }
  if (!isObject(value) || (value["level"] !== "warn" && value["level"] !== "error")) return undefined;
  const texts = ["message", "error", "reason"].flatMap((key) => {
    const one = value[key];
    return typeof one === "string" && one !== "" ? [one] : [];
  });
  const atMs = typeof value["time"] === "string" ? Date.parse(value["time"]) : Number.NaN;
  return { ...said("log", "the agent's log", texts.join(": ")), ...(Number.isNaN(atMs) ? {} : { atMs }) };
}

import { connect } from "node:net";
import { type Hcn, HcnError, type HcnOptions, openHcn } from "../../../agent/protocols/hcn/mod.ts";
import { traceOf } from "../../../shared/reason.ts";

/**
 * Our binding to HNS, compiled as the agent is, in the hands of a test: it connects to the port in its first argument and
 * does what the lines that come ask for, side by side. Its second argument is the binding's options.
 */
export interface Request {
  readonly id: number;
  /**
   * A call of `Hcn`, or: `leaked`, `lost`, `longestGapMs` (between two runs of this thread's timer since the last question),
   * `listEndpoints` (so many times; answers how many there were each time), `dispose`.
   */
  readonly call: string;
  readonly args: readonly unknown[];
}

export interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: {
    readonly name: string;
    readonly message: string;
    readonly hresult: number;
    readonly call: string;
    readonly timedOut: boolean;
    readonly serviceText: string;
  };
}

const [port = "", options = "{}"] = process.argv.slice(2);
const lost: string[] = [];
const hcn = openHcn({ ...(JSON.parse(options) as HcnOptions), onLost: ({ message }) => void lost.push(message) });

const timerMs = 10;
let longestGapMs = 0;
let last = performance.now();
setInterval(() => {
  const now = performance.now();
  longestGapMs = Math.max(longestGapMs, now - last);
  last = now;
}, timerMs);

const probes: Readonly<Record<string, (number: number) => unknown>> = {
  leaked: () => hcn.leaked,
  lost: () => lost,
  longestGapMs: () => {
    const gap = longestGapMs;
    longestGapMs = 0;
    return gap;
  },
  listEndpoints: async (times) => {
    let listed = 0;
    for (let i = 0; i < times; i++) listed += (await hcn.endpoints()).length;
    return listed / times;
  },
  dispose: () => hcn[Symbol.asyncDispose](),
};

const socket = connect(Number(port), "127.0.0.1");
let received = "";
socket.setEncoding("utf8");
socket.on("data", (text: string) => {
  const lines = (received + text).split("\n");
  received = lines.pop() ?? "";
  for (const line of lines) void perform(JSON.parse(line) as Request).then((answer) => say(answer));
});
// With a call under way, or one that hangs: it ends all the same.
socket.on("close", () => process.exit(0));

async function perform({ id, call, args }: Request): Promise<Answer> {
  try {
    const probe = probes[call];
    if (probe !== undefined) return { id, value: await probe(args[0] as number) };
    return { id, value: await hcn[call as Exclude<keyof Hcn, "leaked" | symbol>](...(args as [never, never, never])) };
  } catch (caught) {
    if (!(caught instanceof HcnError)) return { id, error: strange(caught) };
    const { name, message, hresult, call: failed, timedOut, serviceText } = caught;
    return { id, error: { name, message, hresult, call: failed, timedOut, serviceText } };
  }
}

function strange(caught: unknown): NonNullable<Answer["error"]> {
  const message = traceOf(caught);
  return { name: "Strange", message, hresult: 0, call: "", timedOut: false, serviceText: "" };
}

function say(answer: Answer): void {
  socket.write(`${JSON.stringify(answer)}\n`);
}

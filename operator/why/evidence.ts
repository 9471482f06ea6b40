import type { Facts, Statement } from "./facts.ts";

/** Sentences beside the one that decided. */
const maxMore = 2;
const maxSandboxes = 2;
/** Of a sentence: the rest of a runtime's error repeats it. */
const maxChars = 700;

const ago = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min ago` : `${Math.round(minutes / 60)} h ago`;
};

/** `the agent's last ADD, 12 s ago, 41 times: Cannot …` */
export function formatStatement({ from, text, atMs, times = 1 }: Statement, nowMs: number): string {
  const when = atMs === undefined ? "" : `, ${ago(nowMs - atMs)}`;
  const often = times > 1 ? `, ${times} times` : "";
  return `${from}${when}${often}: ${text.length > maxChars ? `${text.slice(0, maxChars)}…` : text}`;
}

/** What a verdict rests on: the sentence that decided, others of the same pod, and the numbers that go with them. */
export function evidenceOf(facts: Facts, decided: Statement | undefined): readonly string[] {
  const { statements, nowMs } = facts;
  const more = statements
    .filter((one) => one !== decided && one.isOfPod && one.text !== decided?.text)
    .slice(0, maxMore);
  const said = [...(decided === undefined ? [] : [decided]), ...more].map((one) => formatStatement(one, nowMs));
  return [...said, ...attachmentLines(facts), ...runtimeLines(facts), ...poolLines(facts), ...slowestPart(facts)];
}

function attachmentLines({ attachments, leases }: Facts): readonly string[] {
  const interfaces = attachments.map(
    ({ ifname, hostIfname, network, addresses }) =>
      `interface: ${ifname} in network ${network}, ${hostIfname} on the node, ${addresses.join(", ") || "no address of Pipette's"}`,
  );
  const held = leases.map(
    ({ address, state, network, allocatedAt }) => `lease: ${address} of ${network}, ${state}, since ${allocatedAt}`,
  );
  return [...interfaces, ...held].slice(0, 4);
}

/** What the runtime has of it: one sandbox usually, some where it failed again and again. */
function runtimeLines({ runtime, pod, nowMs }: Facts): readonly string[] {
  if (runtime === undefined) return [];
  if (runtime.network?.isReady === false)
    return [`runtime: its network is not ready: ${runtime.network.message.slice(0, maxChars)}`];
  if (pod === undefined) return [];
  if (runtime.sandboxes.length === 0) return ["runtime: it has no sandbox of the pod"];
  return runtime.sandboxes
    .slice(0, maxSandboxes)
    .map(({ id, isReady, createdAtMs, netns, isNetnsThere, addresses }) => {
      const where = netns === undefined ? "" : `, in ${netns}${isNetnsThere === false ? ", which is gone" : ""}`;
      const at = addresses.length === 0 ? "without an address" : `at ${addresses.join(", ")}`;
      return `runtime: sandbox ${id.slice(0, 13)}, ${isReady ? "ready" : "not ready"}, made ${ago(nowMs - createdAtMs)}, ${at}${where}`;
    });
}

/** Only where addresses are short. */
function poolLines({ pools }: Facts): readonly string[] {
  return pools
    .filter(({ free, cooling }) => free === "0" && cooling === 0)
    .map(
      ({ network, range, total, allocated, releasing }) =>
        `addresses: of ${total} in ${range} of ${network} ${allocated} are allocated, ${releasing} releasing, none is free`,
    );
}

/** Where the time of the last ADD went, if it was long: most people ask because a pod waits. */
function slowestPart({ calls }: Facts): readonly string[] {
  const add = calls.find(({ verb }) => verb === "ADD");
  if (add === undefined || add.tookMicros < 1_000_000) return [];
  const [slowest] = add.phases.toSorted((a, b) => b.tookMicros - a.tookMicros);
  if (slowest === undefined) return [];
  return [
    `the last ADD took ${seconds(add.tookMicros)}, of which ${seconds(slowest.tookMicros)} went into ${slowest.phase}`,
  ];
}

const seconds = (micros: number): string => `${(micros / 1_000_000).toFixed(1)} s`;

import type { LabPod } from "./lab-pod.ts";

/** What pods say to each other where somebody listens on the way; `ping -p` repeats it in each packet. */
const said = "5069706574746521deadbeef00c0ffee";
export const marker = Buffer.from(said, "hex");

const words = (to: string, count: number, seconds: number): string[] =>
  `ping -n -q -c ${count} -i ${seconds} -W 1 -p ${said} -s 200 ${to}`.split(" ");

/** Says it, and whether there was an answer. */
export async function says(from: LabPod, to: string, count = 3): Promise<boolean> {
  return (await from.namespace.start(words(to, count, 0.1)).ended).status === 0;
}

/** Says it again and again while `work` goes on. */
export async function saysDuring(
  from: LabPod,
  to: string,
  work: () => Promise<void>,
): Promise<ReturnType<typeof answersIn>> {
  const running = from.namespace.start(words(to, 100_000, 0.02).filter((word) => word !== "-q"));
  try {
    await work();
  } finally {
    process.kill(running.pid, "SIGINT");
  }
  return answersIn((await running.ended).stdout);
}

/** Of what `ping` has printed: how many answers came, and the numbers of those that are missing before the last one. */
export function answersIn(printed: string): { readonly answered: number; readonly missing: readonly number[] } {
  const heard = new Set([...printed.matchAll(/icmp_seq=(\d+) ttl/g)].map(([, number]) => Number(number)));
  const last = Math.max(0, ...heard);
  const all = Array.from({ length: last }, (_, i) => i + 1);
  return { answered: heard.size, missing: all.filter((number) => !heard.has(number)) };
}

import { dayMs } from "../node/stepped-clock.ts";
import type { Fault } from "../workload/fault.ts";
import { bridgeNode } from "./on-bridge.ts";

/** For agent and plugins alike, in the middle of whatever they do, and as suddenly back. */
const stepped = (name: string, ms: number): Fault => ({
  name,
  on: ["bridge", "ovs"],
  refusals: {},
  strike: async (node) => {
    const { clock } = bridgeNode(node);
    await clock.step(ms);
    return { what: "plugins and agent", lost: [], [Symbol.asyncDispose]: () => clock.step(-ms) };
  },
});

export const clockFaults: readonly Fault[] = [
  stepped("the clock is set back by a day", -dayMs),
  stepped("the clock is set forward by a day", dayMs),
];

import { randomUUID } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { BridgeNode } from "../node/bridge-node.ts";
import type { Fault } from "../workload/fault.ts";
import { bridgeNode } from "./on-bridge.ts";

const bootId = "/proc/sys/kernel/random/boot_id";

const rebooted: Fault = {
  name: "the node reboots",
  on: ["bridge"],
  endsAgent: true,
  killsPlugins: true,
  refusals: { ADD: [4, 11], DEL: [11], CHECK: [4, 11, 103], STATUS: [50] },
  strike: async (node) => {
    await node.endAgent("SIGKILL");
    await boot(bridgeNode(node));
    return { what: "the node", lost: "all", [Symbol.asyncDispose]: () => node.startAgent() };
  },
};

/** What a boot leaves of a node: its disk. The agent's directory of runtime files is on none. */
export async function boot({ machine, home }: BridgeNode): Promise<void> {
  const script = `
    for name in $(ls /run/netns); do ip netns del $name 2> /dev/null || rm -f /run/netns/$name; done
    for link in $(ip -o link show | sed 's/^[0-9]*: //; s/[@:].*//'); do test $link = lo || ip link del $link 2> /dev/null; done
    nft flush ruleset
    echo 0 > /proc/sys/net/ipv4/ip_forward
    echo 0 > /proc/sys/net/ipv6/conf/all/forwarding
    umount ${bootId} 2> /dev/null
    mount --bind ${join(machine.directory, "boot-id")} ${bootId}`;
  writeFileSync(join(machine.directory, "boot-id"), `${randomUUID()}\n`);
  rmSync(join(home.directory, "run"), { recursive: true, force: true });
  await machine.runWords(["sh", "-c", script]);
}

export const nodeFaults: readonly Fault[] = [rebooted];

import { createEtcdRegistry } from "../../agent/nodes/etcd/mod.ts";
import { machine } from "./etcd-machines.ts";

/**
 * Machines that join and leave all the time, to be killed at any moment.
 *
 * usage: bun etcd-join-program.ts ENDPOINTS FROM COUNT
 */
const [endpoints = "", from = "0", count = "0"] = process.argv.slice(2);
const registry = createEtcdRegistry({ endpoints: endpoints.split(",") });

async function one(i: number): Promise<never> {
  for (;;) {
    await registry.register(machine(i)).catch(() => undefined);
    if (Math.random() < 0.5) await registry.release(machine(i).name).catch(() => undefined);
  }
}

await Promise.all(Array.from({ length: Number(count) }, (_, i) => one(Number(from) + i)));

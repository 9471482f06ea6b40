import { createEtcdRegistry } from "../../agent/cluster/etcd/etcd-registry.ts";
import { random } from "../support/random.ts";
import { seed } from "../support/seed.ts";
import { machine } from "./etcd-machines.ts";

/**
 * Machines that join and leave all the time, to be killed at any moment.
 *
 * usage: bun etcd-join-program.ts ENDPOINTS FROM COUNT
 */
const [endpoints = "", from = "0", count = "0"] = process.argv.slice(2);
const registry = createEtcdRegistry({ endpoints: endpoints.split(",") });

const draw = random(seed + Number(from));

async function one(i: number): Promise<never> {
  for (;;) {
    await registry.register(machine(i)).catch(() => undefined);
    if (draw(2) === 0) await registry.release(machine(i).name).catch(() => undefined);
  }
}

await Promise.all(Array.from({ length: Number(count) }, (_, i) => one(Number(from) + i)));

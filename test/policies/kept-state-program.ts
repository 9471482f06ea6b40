import { readEvent } from "../../agent/policies/events.ts";
import { PolicySet } from "../../agent/policies/policy-set.ts";
import { RuleStore } from "../../agent/policies/rule-store.ts";
import { StateFile } from "../../agent/policies/state-file.ts";
import { createLogger } from "../../shared/log.ts";
import { addresses, computed } from "../fakes/policy-events.ts";

/** Writes one state after the other into the directory that it is given, until it is killed. */
const [, , directory = ""] = process.argv;
const members = (from: number): string[] =>
  Array.from({ length: 500 }, (_, i) => `y/p${from + i} 10.${from}.${i >> 8}.${i & 255}`);

for (let i = process.pid % 200; ; i = (i + 1) % 200) {
  const set = new PolicySet();
  for (const { type, kind, raw } of [addresses("clients", ...members(i)), computed("x/a", String(i))])
    set.apply(readEvent(type, kind, raw));
  const store = new RuleStore();
  store.replace(set, true);
  const file = new StateFile(directory, store, createLogger("error", console.error));
  file.changed();
  await file[Symbol.asyncDispose]();
  console.log(i);
}

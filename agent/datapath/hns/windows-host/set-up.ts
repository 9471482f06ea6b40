import { CniError } from "../../../../shared/errors.ts";
import type { HostChange } from "../../host-change.ts";
import {
  actAndReadBack,
  addressMoveLooks,
  describeEntry,
  hostLookMs,
  type Look,
  lookAt,
  tablesFor,
  undo,
} from "./engine.ts";
import type { HostRunner } from "./powershell.ts";
import { type Entry, HostRecord, type Thing } from "./record.ts";
import type { HostReport, HostSettings, RefusedThing } from "./settings.ts";
import { adapterWith, addressOf, holds } from "./steps/address.ts";
import { gatewayAdapter } from "./steps/gateway.ts";
import { type HostPart, hostParts } from "./steps/mod.ts";
import { hostError, type Step, type Verdict } from "./steps/step.ts";
import { virtualMac } from "./steps/switch.ts";
import type { Tables } from "./tables.ts";

/** A step may change the result of an earlier one, such as a name; then all steps are repeated. */
const maxRounds = 3;

/** The steps of one set-up, and their settings. */
interface Tools {
  readonly settings: HostSettings;
  readonly run: HostRunner;
  readonly record: HostRecord;
  readonly part: HostPart;
}

/**
 * Sets the node up as the settings say, once its HNS network exists: every step finds what is right already, makes the
 * rest, and verifies it. Things of an earlier run that are no longer in the settings are removed first. After a kill at
 * any point the next run continues. Runs for one network do not overlap.
 * @param part only these steps; those of others stay as they are
 * @throws {CniError} 102 naming the step, PowerShell's error, and the wanted state; changes up to then stay
 */
export async function setUpHost(
  settings: HostSettings,
  run: HostRunner,
  part: HostPart = "whole",
): Promise<HostReport> {
  const record = HostRecord.open(settings.dataDir, settings.hnsNetwork);
  const tools: Tools = { settings, run, record, part };
  const changes: HostChange[] = [];
  let tables = await settled(tools);
  for (let rounds = 1; ; rounds++) {
    const round = new Round(tools, tables);
    await round.dropUnwanted();
    for (const step of hostParts[part]) await round.takeStep(step);
    tables = round.tables;
    changes.push(...round.changes.filter(({ did }) => did !== "was there" || rounds === 1));
    const changed = round.changes.filter(({ did }) => did !== "was there");
    if (changed.length === 0) return { changes, refused: round.refused };
    if (rounds === maxRounds) {
      const what = changed.map((change) => change.what).join(", ");
      throw hostError("set the node up", `${what} had to be changed ${maxRounds} times`);
    }
  }
}

/**
 * Waits until the switch's adapter exists and has the node's address, or until the gateway's exists; a missing address
 * is handled by its own step.
 */
async function settled({ settings, run, record: { adapter }, part }: Tools): Promise<Tables> {
  const isSettled = (tables: Tables): boolean => {
    if (part === "routes") return true;
    if (part === "gateway")
      return settings.gatewayPort === undefined || gatewayAdapter(tables, settings.gatewayInterface) !== undefined;
    if (settings.bridgeName !== "" && virtualMac(tables, settings, adapter) === undefined) return false;
    return adapter === undefined || holds(tables, adapterWith(tables, adapter.mac, true)?.index, addressOf(adapter));
  };
  const look = lookAt(run, "look at the node", tablesFor(hostParts[part], settings, adapter));
  for (let looks = 1; ; looks++) {
    const tables = await look();
    if (isSettled(tables) || looks === addressMoveLooks) return tables;
    await run.pause(hostLookMs);
  }
}

/** One time through all steps. */
class Round {
  readonly changes: HostChange[] = [];
  readonly refused: RefusedThing[] = [];
  tables: Tables;
  readonly #settings: HostSettings;
  readonly #run: HostRunner;
  readonly #record: HostRecord;
  readonly #steps: readonly Step[];

  constructor({ settings, run, record, part }: Tools, tables: Tables) {
    this.#settings = settings;
    this.#run = run;
    this.#record = record;
    this.#steps = hostParts[part];
    this.tables = tables;
  }

  /** A peer that has left, a NetNat of another name, another MTU. */
  async dropUnwanted(): Promise<void> {
    const wanted = new Set(
      this.#steps.flatMap((step) => this.#wanted(step).map((thing) => JSON.stringify([step.name, thing]))),
    );
    const entries = this.#record.entries
      .filter((entry) => this.#steps.some(({ name }) => name === entry.step))
      .filter(({ step, thing }) => !wanted.has(JSON.stringify([step, thing])));
    if (entries.length === 0) return;
    await undo(this.#run, entries, (settled, undone) => {
      if (undone.did === "failed") throw undone.caught;
      this.#record.remove(settled);
      for (const entry of settled) this.#note(entry, undone.did);
    });
    this.tables = await this.#look()();
  }

  async takeStep(step: Step): Promise<void> {
    const open: Entry[] = [];
    for (const thing of this.#wanted(step)) {
      const verdict = this.#judge(step, thing);
      if (verdict?.t === "there") this.#note({ step: step.name, thing }, "was there");
      else if (verdict !== undefined)
        open.push({ step: step.name, thing, ...(verdict.before === undefined ? {} : { before: verdict.before }) });
    }
    if (open.length === 0) return;
    this.#record.add(open);
    if (step.apart) await this.#makeApart(step, open);
    else await this.#make(step, open);
  }

  /** `undefined` if it is refused and the step continues with the others. */
  #judge(step: Step, thing: Thing): Verdict | undefined {
    try {
      return step.judge(thing, this.tables);
    } catch (caught) {
      if (!step.apart || !(caught instanceof CniError)) throw caught;
      this.refused.push({ thing, why: caught.message });
      return undefined;
    }
  }

  async #make(step: Step, open: readonly Entry[]): Promise<void> {
    const { tables } = this;
    const statements = open.flatMap(({ thing }) => step.make(thing, tables));
    const isOpen = (thing: Thing, seen: Tables): boolean => step.judge(thing, seen).t === "missing";
    this.tables = await actAndReadBack(this.#run, step.action, statements, this.#look(step.action), (seen) =>
      open
        .filter(({ thing }) => isOpen(thing, seen))
        .map(({ thing }) => `there is no ${step.describe(thing)}`)
        .join(", "),
    );
    for (const entry of open) this.#note(entry, "made");
  }

  /** All in one process, since processes are expensive; on failure in halves, down to the refused one. */
  async #makeApart(step: Step, open: readonly Entry[]): Promise<void> {
    try {
      return await this.#make(step, open);
    } catch (caught) {
      if (!(caught instanceof CniError)) throw caught;
      this.tables = await this.#look(step.action)();
      const left: Entry[] = [];
      for (const entry of open) {
        const verdict = this.#judge(step, entry.thing);
        if (verdict?.t === "there") this.#note(entry, "made");
        else if (verdict !== undefined) left.push(entry);
      }
      const [only, second] = left;
      if (only !== undefined && open.length === 1) this.refused.push({ thing: only.thing, why: caught.message });
      else if (second === undefined) for (const entry of left) await this.#makeApart(step, [entry]);
      else {
        const middle = Math.ceil(left.length / 2);
        await this.#makeApart(step, left.slice(0, middle));
        await this.#makeApart(step, left.slice(middle));
      }
    }
  }

  #wanted(step: Step): readonly Thing[] {
    const { adapter, entries } = this.#record;
    if (!step.needed(this.#settings, adapter)) return [];
    const begun = entries.some((entry) => entry.step === step.name);
    return step.wanted({ settings: this.#settings, tables: this.tables, adapter, begun });
  }

  #look(action = "look at the node"): Look {
    return lookAt(this.#run, action, tablesFor(this.#steps, this.#settings, this.#record.adapter));
  }

  #note(entry: Entry, did: HostChange["did"]): void {
    this.changes.push({ step: entry.step, what: describeEntry(entry), did });
  }
}

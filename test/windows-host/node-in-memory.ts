import type { Ended, ScriptProcess } from "../../agent/datapath/hns/windows-host/powershell.ts";
import { CmdletError, cmdlets } from "./cmdlets.ts";
import { freshNode, type Item, type NodeState } from "./node-state.ts";
import { type ReadCall, type ReadStatement, readScript } from "./read-script.ts";

/** The agent was killed: nothing that it starts from here on happens. */
export class Killed extends Error {}

/**
 * A Windows node that does what scripts say, as far as it is documented. A test can let the agent die before or after
 * any of the statements that change something, let a cmdlet lie, and see what was done.
 */
export class NodeInMemory {
  readonly state: NodeState;
  /** The statements that changed something, as cmdlets. */
  readonly done: string[] = [];
  /** How many processes were started. */
  processes = 0;
  /** Characters. */
  longestScript = 0;
  /** Cmdlets that say they have done it and have not. */
  readonly lying = new Set<string>();
  /** Interfaces, by their alias, for which a cmdlet that is to change them fails. */
  readonly refusing = new Set<string>();
  /** Addresses and blocks that Windows makes no route to and declares no neighbour of. */
  readonly refusedTargets = new Set<string>();
  /** Called after each cmdlet that acts. */
  afterwards: (cmdlet: string) => void = () => undefined;
  #livesFor = Number.POSITIVE_INFINITY;
  #diesAfterwards = false;

  constructor(state: NodeState = freshNode()) {
    this.state = state;
  }

  /** Lets `acts` more statements happen; the agent dies right before the next, or right after the last of them. */
  killAfter(acts: number, when: "before the next" | "after the last"): void {
    this.#livesFor = acts;
    this.#diesAfterwards = when === "after the last";
  }

  /** The agent is started again. */
  revive(): void {
    this.#livesFor = Number.POSITIVE_INFINITY;
  }

  readonly execute: ScriptProcess = async (script) => {
    if (this.#isDead()) throw new Killed("the agent is dead");
    this.processes++;
    this.longestScript = Math.max(this.longestScript, script.length);
    return this.#answer(script);
  };

  #isDead(): boolean {
    return this.#diesAfterwards && this.#livesFor === 0;
  }

  #answer(text: string): Ended {
    const { marker, statements } = readScript(text);
    const tables: Record<string, unknown> = {};
    let at = 0;
    try {
      for (const statement of statements) {
        at = statement.at;
        const rows = this.#run(statement);
        if (statement.fields !== undefined) tables[at] = rows;
      }
    } catch (caught) {
      if (!(caught instanceof CmdletError)) throw caught;
      return ended(marker + JSON.stringify({ at, error: caught.message, id: caught.id }) + marker);
    }
    return ended(marker + JSON.stringify({ tables }) + marker);
  }

  #run({ calls, fields }: ReadStatement): readonly unknown[] {
    let items: readonly Item[] | undefined;
    for (const call of calls)
      items = call.cmdlet === "Where-Object" ? where(items ?? [], call) : this.#call(call, items);
    return fields === undefined ? [] : (items ?? []).map((item) => this.#row(item, fields));
  }

  #call({ cmdlet: name, args: all }: ReadCall, input: readonly Item[] | undefined): readonly Item[] {
    const { ErrorAction, ...args } = all;
    const cmdlet = cmdlets[name];
    if (cmdlet === undefined) throw new CmdletError(`The term '${name}' is not recognized`, "CommandNotFoundException");
    const unknown = Object.keys(args).find((key) => !cmdlet.parameters.includes(key));
    if (unknown !== undefined)
      throw new CmdletError(`A parameter cannot be found that matches '${unknown}'.`, `NamedParameterNotFound,${name}`);
    if (!cmdlet.acts) return cmdlet.run(this.state, args, input);
    if (this.#livesFor === 0) {
      this.#diesAfterwards = true;
      throw new Killed("the agent is dead");
    }
    this.done.push(name);
    if (input?.some((item) => this.refusing.has(asText(item["InterfaceAlias"]))) === true) {
      if (ErrorAction === "SilentlyContinue") return [];
      throw new CmdletError("The parameter is incorrect. ", `Windows System Error 87,${name}`);
    }
    if ([args["DestinationPrefix"], args["IPAddress"]].some((target) => this.refusedTargets.has(String(target))))
      throw new CmdletError("The parameter is incorrect. ", `Windows System Error 87,${name}`);
    if (!this.lying.has(name)) cmdlet.run(this.state, args, input);
    this.afterwards(name);
    this.#livesFor--;
    if (this.#isDead()) throw new Killed("the agent is dead");
    return [];
  }

  #row(item: Item, fields: readonly string[]): Record<string, unknown> {
    const alias = this.state.adapters.find((one) => one["InterfaceIndex"] === item["InterfaceIndex"])?.["Name"];
    const whole: Item = { InterfaceAlias: alias ?? "Loopback Pseudo-Interface 1", ...item };
    return Object.fromEntries(
      fields.map((field) => {
        if (!field.endsWith("[]")) return [field, asText(whole[field])];
        const list = whole[field.slice(0, -2)];
        return [field.slice(0, -2), Array.isArray(list) && list.length > 0 ? list : [""]];
      }),
    );
  }
}

/** `[string]$_.X`: absent properties are empty, truth is a word. */
function asText(value: Item[string] | undefined): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  return value === undefined ? "" : String(value);
}

function where(items: readonly Item[], { args }: ReadCall): readonly Item[] {
  const { Property, Value, EQ, ...rest } = args;
  if (EQ !== true || typeof Property !== "string" || Object.keys(rest).length > 0)
    throw new SyntaxError(`Where-Object ${JSON.stringify(args)}`);
  return items.filter((item) => asText(item[Property]).toLowerCase() === String(Value).toLowerCase());
}

const ended = (stdout: string): Ended => ({ stdout, stderr: "", failure: "" });

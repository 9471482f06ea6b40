import { random } from "../../support/random.ts";
import { type Call, dataDirHere } from "./call.ts";
import { flaws, goodConf, type NetworkConf, oneOf, type Pick } from "./configurations.ts";

const maxCalls = 16;

/** The calls of one seed: always the same. */
export function sequenceOf(seed: number): readonly Call[] {
  const pick = random(seed);
  const network = goodConf(pick);
  const calls: Call[] = [];
  const ids = new Names(pick);
  const length = 3 + pick(maxCalls - 2);
  for (let i = 0; i < length; i++) calls.push(nextCall(pick, network, ids));
  return calls;
}

/** Container ids: of an earlier call or new; who has left never comes back, as no sandbox does. */
class Names {
  readonly #pick: Pick;
  readonly #here: string[] = [];
  readonly #left: string[] = [];

  constructor(pick: Pick) {
    this.#pick = pick;
  }

  toAdd(): string {
    if (this.#here.length > 0 && this.#pick(6) === 0) return oneOf(this.#pick, this.#here);
    const id = `c${this.#here.length + this.#left.length}`;
    this.#here.push(id);
    return id;
  }

  toCheck(): string {
    const all = [...this.#here, ...this.#left];
    return all.length > 0 && this.#pick(6) > 0 ? oneOf(this.#pick, all) : "never-seen";
  }

  toDelete(): string {
    const id = this.toCheck();
    const i = this.#here.indexOf(id);
    if (i >= 0) this.#left.push(...this.#here.splice(i, 1));
    return id;
  }
}

function nextCall(pick: Pick, network: NetworkConf, names: Names): Call {
  const kind = pick(10);
  if (pick(12) === 0) return flawed(pick, network, names);
  const ifname = pick(8) === 0 ? "net1" : "eth0";
  const plain = { ifname, args: oneOf(pick, ["", "IgnoreUnknown=1;K8S_POD_NAME=a"]), broken: false, asks: false };
  const stdin = JSON.stringify(network.conf);
  if (kind < 2) return { ...plain, verb: "DEL", containerId: names.toDelete(), stdin };
  if (kind < 3) return { ...plain, verb: "CHECK", containerId: names.toCheck(), stdin };
  if (kind < 8) return { ...plain, verb: "ADD", containerId: names.toAdd(), stdin };
  return { ...plain, verb: "ADD", containerId: names.toAdd(), ...asking(pick, network), asks: true };
}

/** Addresses asked for, in each of the three ways. */
function asking(pick: Pick, { conf, askable }: NetworkConf): Readonly<Record<"args" | "stdin", string>> {
  const some = (): string[] => {
    const number = pick(4) === 0 ? 2 : 1;
    const one = (): string => (pick(12) === 0 ? "10.200.0.1" : oneOf(pick, askable));
    return Array.from({ length: number }, () => spelled(pick, one()));
  };
  const more: Record<string, unknown> = {};
  const way = pick(4);
  if (way !== 1) more["runtimeConfig"] = { ...(conf["runtimeConfig"] as object | undefined), ips: some() };
  if (way === 1 || way === 3) more["args"] = { cni: { ips: some() } };
  const args = way === 2 ? `IP=${oneOf(pick, askable)}` : "";
  return { args, stdin: JSON.stringify({ ...conf, ...more }) };
}

function spelled(pick: Pick, ip: string): string {
  const ways = ip.includes(":") ? [ip, `${ip}/64`] : [ip, `${ip}/24`, `::ffff:${ip}`];
  return oneOf(pick, ways);
}

/** A call that both must refuse, or, where only the names count, may not. */
function flawed(pick: Pick, { conf }: NetworkConf, names: Names): Call {
  const verb = oneOf(pick, ["ADD", "ADD", "DEL", "CHECK"] as const);
  const call: Call = {
    verb,
    containerId: verb === "ADD" ? "refused" : verb === "DEL" ? names.toDelete() : names.toCheck(),
    ifname: "eth0",
    args: "",
    stdin: JSON.stringify(conf),
    broken: true,
    asks: false,
  };
  const text = JSON.stringify(conf);
  switch (pick(8)) {
    case 0:
      return {
        ...call,
        args: oneOf(pick, ["FOO=1", "IP=10.0.0", "IgnoreUnknown=1;IP", "IgnoreUnknown=1;", "IgnoreUnknown=x"]),
      };
    case 1:
      return { ...call, stdin: oneOf(pick, ["", "{", `${text}x`, "[]", "null", text.slice(0, -2)]) };
    case 2:
      return { ...call, containerId: oneOf(pick, ["", "a/b", "-a"]) };
    case 3:
      return { ...call, ifname: oneOf(pick, ["", "a/b", ".", "sixteen-bytes-xx"]) };
    default: {
      const stdin = JSON.stringify({ ...conf, ...oneOf(pick, flaws) });
      // Without a data directory a DEL would look into that of the machine; an ADD does not come that far.
      return stdin.includes(dataDirHere) ? { ...call, stdin } : { ...call, stdin, verb: "ADD", containerId: "refused" };
    }
  }
}

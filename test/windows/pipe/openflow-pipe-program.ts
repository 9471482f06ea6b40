import { writeFileSync } from "node:fs";
import {
  addFlow,
  ct,
  flow,
  flowText,
  match,
  OpenFlowClient,
  output,
  parseAddress,
} from "../../../agent/protocols/openflow/mod.ts";
import { reasonOf } from "../../../shared/reason.ts";
import { relay } from "./tcp-relay.ts";

/**
 * Compiled for Windows and run in Wine. As `relay PIPE PORT` it serves a pipe, as Open vSwitch does on Windows, with the
 * switch that listens on a TCP port; as `client ADDRESS` it is a program that uses the switch, and says what it sees.
 */
const say = (line: unknown): void => writeFileSync(1, `${JSON.stringify(line)}\n`);

async function client(address: string): Promise<void> {
  using opened = await OpenFlowClient.connect(parseAddress(address, true));
  const many = Array.from({ length: 3000 }, (_, i) =>
    flow({ table: 70, cookie: BigInt(i), match: match().set("reg3", i).build(), actions: [output(1)] }),
  );
  const tracked = flow({ match: match().protocol("ip").build(), actions: [ct({ commit: true, zone: 5 })] });
  await opened.bundle([...many, tracked].map(addFlow));
  const flows = await opened.flows();
  say({ flows: flows.length, first: flows.map((found) => flowText(found.flow)).sort()[0] });
  const error = await opened.closed;
  say(error.message);
}

const [, , what, address = "", port = ""] = process.argv;
try {
  if (what === "relay") relay(address, Number(port), () => say("relays"));
  else await client(address);
} catch (caught) {
  writeFileSync(2, reasonOf(caught));
  process.exitCode = 1;
}

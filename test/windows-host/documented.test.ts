import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type HostRunner, startedPods } from "../../agent/datapath/hns/windows-host/mod.ts";
import { renderPipeline, renderScript } from "../../agent/datapath/hns/windows-host/script.ts";
import { listings } from "../../agent/datapath/hns/windows-host/tables.ts";
import { makeInternalPort, startContainer } from "./node-state.ts";
import { gateway, OvsNode } from "./ovs-gateway-fixture.ts";
import { HostFixture } from "./set-up-fixture.ts";

/** Notes what is run on a node, as a person would type it. */
const noting = ({ run, pause }: HostRunner, lines: Set<string>): HostRunner => ({
  pause,
  run: (action, statements) => {
    for (const statement of statements) {
      const fields = "fields" in statement ? statement.fields.map((field) => field.replace("[]", "")) : undefined;
      const shown = fields === undefined ? "" : `|Format-Table ${fields.join(",")}`;
      lines.add(`${renderPipeline(statement)}${shown}`.replaceAll("|", " | "));
    }
    return run(action, statements);
  },
});

class NotingFixture extends HostFixture {
  readonly lines = new Set<string>();

  override get run(): HostRunner {
    return noting(super.run, this.lines);
  }
}

class NotingOvsNode extends OvsNode {
  readonly lines = new Set<string>();

  override get run(): HostRunner {
    return noting(super.run, this.lines);
  }
}

test("docs/windows-checklist.md shows every command that is run on a node", async () => {
  const lines = new Set<string>();
  for (const moves of [true, false]) {
    using host = new NotingFixture();
    host.moves = moves;
    await host.start();
    await host.cleanUp();
    for (const line of host.lines) lines.add(line);
  }
  using dhcp = new NotingFixture();
  dhcp.moves = false;
  dhcp.node.state.interfaces[1]!["Dhcp"] = "Enabled";
  dhcp.node.afterwards = (cmdlet) => {
    if (cmdlet === "Set-NetIPInterface" && dhcp.node.state.switches.length === 0)
      dhcp.node.state.addresses.push({ IPAddress: "192.168.1.5", InterfaceIndex: 7, PrefixLength: 24 });
  };
  await dhcp.start();
  await dhcp.cleanUp();
  for (const line of dhcp.lines) lines.add(line);
  using ovs = new NotingOvsNode();
  const { state } = ovs.node;
  // What Windows has learned is replaced.
  makeInternalPort(state, gateway);
  state.neighbours.push({ InterfaceIndex: 33, IPAddress: "169.254.0.253", LinkLayerAddress: "", State: "Unreachable" });
  await ovs.start();
  startContainer(state, "web-1a2b3c");
  await startedPods(ovs.run, ["web-1a2b3c"], 1450);
  await ovs.cleanUp();
  for (const line of ovs.lines) lines.add(line);
  const page = readFileSync("docs/windows-checklist.md", "utf8");
  expect([...lines].filter((line) => !page.includes(`${line}\n`))).toEqual([]);
  expect(page).toContain(renderScript([listings.nats], "#m#"));
});

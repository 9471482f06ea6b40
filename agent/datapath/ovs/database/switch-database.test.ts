import { expect, test } from "vitest";
import { parseUuid, type RowChange } from "../../../protocols/ovsdb/mod.ts";
import { changeFilter } from "./switch-database.ts";

const uuid = parseUuid("550e8400-e29b-41d4-a716-446655440000")!;
const change = (table: RowChange["table"], before?: object, after?: object): RowChange =>
  ({ table, uuid, before, after }) as RowChange;

test.each([
  ["the switch's progress", change("Open_vSwitch", { cur_cfg: 1 }, { cur_cfg: 2 }), false],
  ["a bridge that is gone", change("Bridge", { name: "br-int", fail_mode: "secure" }), true],
  ["a bridge that forwards by itself", change("Bridge", { name: "b", fail_mode: "secure" }, { name: "b" }), true],
  ["a bridge with one port more", change("Bridge", { name: "b", ports: 1 }, { name: "b", ports: 2 }), false],
  ["another device of the gateway", change("Interface", { name: "gw", ifindex: 1 }, { name: "gw", ifindex: 2 }), true],
  ["a pod's port that a call makes", change("Port", undefined, { name: "busy" }), false],
  ["somebody's port on a bridge", change("Port", undefined, { name: "nic0", external_ids: new Map() }), true],
  [
    "somebody's port that has a tag now",
    change("Port", { name: "nic0" }, { name: "nic0", external_ids: new Map() }),
    false,
  ],
  ["a pod's port that is gone", change("Port", { name: "pod" }), true],
  ["another number of a pod's port", change("Interface", { name: "pod", ofport: 1 }, { name: "pod", ofport: 2 }), true],
  ["more about a pod's port", change("Interface", { name: "pod", ifindex: 1 }, { name: "pod", ifindex: 2 }), false],
])("%s", (_what, given, expected) => {
  expect(changeFilter(new Set(["gw"]), (name) => name !== "pod")(given)).toBe(expected);
});

import type { Action } from "../../agent/protocols/openflow/action.ts";
import { Group, Meter } from "../../agent/protocols/openflow/constants.ts";
import type { Flow } from "../../agent/protocols/openflow/flow.ts";
import { flowMod } from "../../agent/protocols/openflow/flow-wire.ts";
import { groupMod } from "../../agent/protocols/openflow/group.ts";
import { meterMod } from "../../agent/protocols/openflow/meter.ts";
import type { OpenFlowGroup, OpenFlowRequest } from "../../agent/protocols/openflow/mod.ts";

// What others ask a switch for, and Pipette itself never does.

/** Gives all flows that match at least as narrowly these instructions. */
export const modifyFlows = (flow: Flow): OpenFlowRequest => flowMod("modify", flow);
/** The one flow with this table, priority and match. */
export const modifyFlow = (flow: Flow): OpenFlowRequest => flowMod("modifyStrict", flow);

export const addGroup = (group: OpenFlowGroup): OpenFlowRequest => groupMod("add", group);
export const modifyGroup = (group: OpenFlowGroup): OpenFlowRequest => groupMod("modify", group);
export const deleteAllGroups = (): OpenFlowRequest =>
  groupMod("delete", { id: Group.ALL, type: "all", buckets: [], selection: undefined });

export const deleteMeter = (id: number): OpenFlowRequest => meterMod("delete", { id });
export const deleteAllMeters = (): OpenFlowRequest => deleteMeter(Meter.ALL);

export const decTtl: Action = { t: "dec-ttl" };
export const ctClear: Action = { t: "ct-clear" };
export const popVlan: Action = { t: "pop-vlan" };
export const pushVlan = (type = 0x8100): Action => ({ t: "push-vlan", type });
export const note = (bytes: Uint8Array): Action => ({ t: "note", bytes });
export const conjunction = (id: number, clause: number, clauses: number): Action => ({
  t: "conjunction",
  id,
  clause,
  clauses,
});

/** To the controller; what is not said has the switch's default. */
export const controller = (options: Partial<Extract<Action, { t: "controller" }>> = {}): Action => ({
  t: "controller",
  maxLength: 0xffff,
  controllerId: 0,
  reason: 1,
  userData: new Uint8Array(0),
  pause: false,
  meter: undefined,
  ...options,
});

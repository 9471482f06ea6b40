import { CniCode, CniError } from "../../../../shared/errors.ts";
import { type Flow, flowText, type OpenFlowGroup } from "../../../protocols/openflow/mod.ts";
import { type Category, cookieOf } from "../pipeline/cookie.ts";
import type { Part } from "../switch-program.ts";

/** A part with its flows by their places in the switch and its groups by their numbers, cookies set. */
export interface PlacedPart {
  readonly category: Category;
  readonly flows: ReadonlyMap<string, Flow>;
  readonly groups: ReadonlyMap<number, OpenFlowGroup>;
}

/** @throws {CniError} 102 where two of its flows have one place, or two groups one number */
export function placePart(key: string, part: Part, round: number, object: number): PlacedPart {
  const cookie = cookieOf(round, part.category, part.object ?? object);
  const flows = new Map<string, Flow>();
  for (const flow of part.flows) {
    const place = placeOf(flow);
    if (flows.has(place)) throw doubled(key, `flow "${flowText(flow)}"`);
    flows.set(place, { ...flow, cookie });
  }
  const groups = new Map<number, OpenFlowGroup>();
  for (const group of part.groups ?? []) {
    if (groups.has(group.id)) throw doubled(key, `group ${group.id}`);
    groups.set(group.id, group);
  }
  return { category: part.category, flows, groups };
}

const doubled = (key: string, what: string): CniError =>
  new CniError(
    CniCode.interfaceFailure,
    `Cannot put part "${key}" into the switch: two of its own have the place of ${what}, wanted a place for each`,
  );

/** What tells a flow from every other one: table, priority and match (OpenFlow 1.5.1, 5.2). */
export function placeOf({ table, priority, match }: Flow): string {
  let place = `${table} ${priority}`;
  for (const { field, value, mask } of match.fields) {
    place += ` ${field.rank}=${value.toString(36)}`;
    if (mask !== field.ones) place += `/${mask.toString(36)}`;
  }
  for (const { header, payload } of match.unknown) place += ` x${header}=${payload.toString()}`;
  return place;
}

export const messagesOf = ({ flows, groups }: PlacedPart): number => flows.size + groups.size;

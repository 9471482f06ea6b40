import { type ApiObject, listIn, mapIn, mapsIn, textIn } from "../kubernetes/mod.ts";

export type Labels = Readonly<Record<string, string>>;

/** One condition on the labels of an object; all of a selector's must hold. */
export type Requirement =
  | { readonly t: "in"; readonly key: string; readonly values: readonly string[] }
  | { readonly t: "notIn"; readonly key: string; readonly values: readonly string[] }
  | { readonly t: "exists"; readonly key: string }
  | { readonly t: "absent"; readonly key: string };

/** A label selector of Kubernetes. One without requirements selects everything. */
export interface Selector {
  readonly requirements: readonly Requirement[];
  /** As apimachinery prints it, in sorted order: selectors of the same text select the same. */
  readonly text: string;
}

export const everything: Selector = { requirements: [], text: "" };

/** The value of a label. Labels may be called "constructor". */
export const labelIn = (labels: Labels, key: string): string | undefined =>
  Object.hasOwn(labels, key) ? labels[key] : undefined;

export const selects = ({ requirements }: Selector, labels: Labels): boolean =>
  requirements.every((requirement) => holds(requirement, labelIn(labels, requirement.key)));

export const selectsAll = ({ requirements }: Selector): boolean => requirements.length === 0;

function holds(requirement: Requirement, value: string | undefined): boolean {
  switch (requirement.t) {
    case "in":
      return value !== undefined && requirement.values.includes(value);
    case "notIn":
      return value === undefined || !requirement.values.includes(value);
    case "exists":
      return value !== undefined;
    case "absent":
      return value === undefined;
  }
}

/**
 * Reads a `LabelSelector` (meta/v1); `undefined` for one that the API server would refuse. Nobody may take that for a
 * selector that selects everything.
 */
export function readSelector(object: ApiObject): Selector | undefined {
  const labels = mapIn(object, "matchLabels");
  const read = [
    ...Object.keys(labels).map((key) => equalsOf(key, labels[key])),
    ...mapsIn(object, "matchExpressions").map(expressionOf),
  ];
  const parts = read.filter((part) => part !== undefined);
  if (parts.length < read.length) return undefined;
  if (parts.length === 0) return everything;
  const sorted = parts.sort((a, b) => order(a.requirement.key, b.requirement.key) || order(a.text, b.text));
  return {
    requirements: sorted.map(({ requirement }) => requirement),
    text: sorted.map(({ text }) => text).join(","),
  };
}

interface Part {
  readonly requirement: Requirement;
  readonly text: string;
}

function equalsOf(key: string, value: unknown): Part | undefined {
  if (!isKey(key) || typeof value !== "string" || !isValue(value)) return undefined;
  return { requirement: { t: "in", key, values: [value] }, text: `${key}=${value}` };
}

function expressionOf(expression: ApiObject): Part | undefined {
  const key = textIn(expression, "key") ?? "";
  const values = listIn(expression, "values").filter((value) => typeof value === "string");
  const isSet = values.length > 0 && values.length === listIn(expression, "values").length && values.every(isValue);
  const isEmpty = listIn(expression, "values").length === 0;
  if (!isKey(key)) return undefined;
  const set = `(${[...values].sort().join(",")})`;
  switch (expression["operator"]) {
    case "In":
      return isSet ? { requirement: { t: "in", key, values }, text: `${key} in ${set}` } : undefined;
    case "NotIn":
      return isSet ? { requirement: { t: "notIn", key, values }, text: `${key} notin ${set}` } : undefined;
    case "Exists":
      return isEmpty ? { requirement: { t: "exists", key }, text: key } : undefined;
    case "DoesNotExist":
      return isEmpty ? { requirement: { t: "absent", key }, text: `!${key}` } : undefined;
    default:
      return undefined;
  }
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** `name`, or `prefix/name` with a DNS subdomain before it. */
const keyPattern =
  /^(?:[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*\/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;
const valuePattern = /^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;
const longestPrefix = 253;
const longestName = 63;

function isKey(key: string): boolean {
  const slash = key.indexOf("/");
  return slash <= longestPrefix && key.length - slash - 1 <= longestName && keyPattern.test(key);
}

const isValue = (value: string): boolean => value.length <= longestName && valuePattern.test(value);

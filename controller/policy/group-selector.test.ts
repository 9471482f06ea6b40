import { expect, test } from "vitest";
import type { ApiObject } from "../../shared/kubernetes/mod.ts";
import { readSelector, type Selector } from "../../shared/policy/mod.ts";
import { type GroupSelector, nameOf, textOf } from "./group-selector.ts";

const selector = (object: ApiObject): Selector => {
  const read = readSelector(object);
  if (read === undefined) throw new Error("no selector");
  return read;
};

/** Made with apimachinery 0.35.4 and google/uuid 1.6.0, as Antrea's controller makes them. */
const named: readonly (readonly [GroupSelector, text: string, name: string])[] = [
  [{ namespace: "x" }, "namespace=x", "2beeaa7f-35b5-5921-b46e-c50e18e0280d"],
  [{ namespace: "x", pods: selector({}) }, "namespace=x And podSelector=", "6ac523e6-dbc3-59c4-9166-2ebd1baaeacb"],
  [
    { namespace: "x", pods: selector({ matchLabels: { tier: "db", app: "web" } }) },
    "namespace=x And podSelector=app=web,tier=db",
    "642c6b89-728b-509b-a8ca-e763c73951a6",
  ],
  [
    {
      namespace: "x",
      pods: selector({
        matchLabels: { app: "" },
        matchExpressions: [
          { key: "pod", operator: "In", values: ["b", "a"] },
          { key: "gone", operator: "DoesNotExist" },
          { key: "a.b/c", operator: "Exists" },
          { key: "tier", operator: "NotIn", values: ["db"] },
        ],
      }),
    },
    "namespace=x And podSelector=a.b/c,app=,!gone,pod in (a,b),tier notin (db)",
    "fdf95b9b-d573-5531-9dcc-5927a4c7e507",
  ],
  [{ namespaces: selector({}) }, "namespaceSelector=", "946d5846-ff34-5a8c-ab0b-2c6c271b0778"],
  [
    {
      namespaces: selector({ matchLabels: { "kubernetes.io/metadata.name": "y" } }),
      pods: selector({ matchLabels: { pod: "a" } }),
    },
    "namespaceSelector=kubernetes.io/metadata.name=y And podSelector=pod=a",
    "7de3aae5-e91b-5886-b0b7-36d875975809",
  ],
];

test.each(named)("a group has the text and the name that Antrea gives it: %#", (group, text, name) => {
  expect(textOf(group)).toBe(text);
  expect(nameOf(text)).toBe(name);
});

import { expect, test } from "vitest";
import { withoutSourceLinks } from "./files.ts";

test.each([
  ["[the plugin](../cni/add.ts)", "the plugin (cni/add.ts)"],
  ["[`add`](../cni/add.ts#L3)", "`add` (cni/add.ts)"],
  ["[cni/add.ts](../cni/add.ts)", "cni/add.ts"],
  ["[a page](ipam.md#ranges)", "[a page](ipam.md#ranges)"],
  ["[a decision](decisions/README.md)", "[a decision](decisions/README.md)"],
  ["[a sample](../conf/agent.yaml)", "[a sample](../conf/agent.yaml)"],
  ["[its text](../LICENSE)", "[its text](../LICENSE)"],
  ["[below](#below), [out](https://example.org)", "[below](#below), [out](https://example.org)"],
])("in a release %s becomes %s", (link, shown) => {
  expect(withoutSourceLinks("docs/code-tour.md", link)).toBe(shown);
});

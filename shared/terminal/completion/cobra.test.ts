import { expect, test } from "vitest";
import { defineCommand, defineGroup } from "../command.ts";
import { cobraCompletion } from "./cobra.ts";

const get = defineCommand({
  action: "get",
  about: "",
  operands: [{ name: "KIND", help: "", of: ["pods", "peers", "leases"] }],
  options: {
    output: { value: "FORM", of: ["json", "yaml"], help: "how" },
    bundle: { value: "FILE", of: "file", help: "a bundle" },
    node: { value: "NAME", help: "whose\nsecond line" },
  },
  run: async () => 0,
});
const root = defineGroup({
  about: "",
  entries: [
    { name: "get", summary: "what nodes have", load: async () => get },
    { name: "ipam", summary: "addresses", load: async () => defineGroup({ about: "", entries: [] }) },
    { name: "secret", summary: "for scripts", hidden: true, load: async () => get },
  ],
});

test.each([
  [[""], "get\twhat nodes have\nipam\taddresses\n:4\n"],
  [["g"], "get\twhat nodes have\n:4\n"],
  [["get", "p"], "pods\npeers\n:4\n"],
  [["get", "pods", "--o"], "--output\thow\n:4\n"],
  [["get", "--node", ""], ":4\n"],
  [["get", "--n"], "--node\twhose\n:4\n"],
  [["get", "--output", "y"], "yaml\n:4\n"],
  [["get", "--bundle", ""], ":0\n"],
  [["none", "x"], ":4\n"],
  [[], "get\twhat nodes have\nipam\taddresses\n:4\n"],
])("%j: %j", async (args, wanted) => {
  expect(await cobraCompletion(root, args)).toBe(wanted);
});

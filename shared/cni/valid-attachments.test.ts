import { expect, test } from "vitest";
import { Fields } from "../schema/json-fields.ts";
import { validAttachments } from "./valid-attachments.ts";

const one = [{ containerID: "c1", ifname: "eth0" }];
const read = [{ containerId: "c1", ifname: "eth0" }];

test.each([
  [{ "cni.dev/valid-attachments": one }, read],
  [{ "cni.dev/valid-attachments": [] }, []],
  [{ "cni.dev/valid-attachments": [{ containerid: "c1", IfName: "eth0", more: 1 }] }, read],
  // A Go runtime without a container writes its list so.
  [{ "cni.dev/valid-attachments": null }, []],
  // The name of the specification's first text, alone and beside the other.
  [{ "cni.dev/attachments": one }, read],
  [{ "cni.dev/attachments": one, "cni.dev/valid-attachments": [] }, []],
])("%j", (conf, wanted) => {
  expect(validAttachments(new Fields(conf))).toEqual(wanted);
});

test.each([
  [{}, '"cni.dev/valid-attachments" is missing, wanted the attachments to keep'],
  [{ "cni.dev/other": [] }, '"cni.dev/valid-attachments" is missing'],
  [{ "cni.dev/valid-attachments": {} }, '"cni.dev/valid-attachments" is {}, wanted an array'],
  [{ "cni.dev/valid-attachments": ["c1"] }, '"cni.dev/valid-attachments[0]" is "c1", wanted an object'],
  [{ "cni.dev/valid-attachments": [{ ifname: "eth0" }] }, '"cni.dev/valid-attachments[0].containerID" is missing'],
  [{ "cni.dev/valid-attachments": [{ containerID: "c1", ifname: "" }] }, '"cni.dev/valid-attachments[0].ifname" is ""'],
])("%j is refused", (conf, wanted) => {
  expect(() => validAttachments(new Fields(conf))).toThrow(wanted);
});

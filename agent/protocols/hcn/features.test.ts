import { expect, test } from "vitest";
import { featuresOf, readVersion } from "./features.ts";

const at = (text: string): string => {
  const [Major, Minor] = text.split(".").map(Number);
  const version = readVersion({ Major, Minor });
  if (version === undefined) throw new Error(`"${text}" is no version`);
  const { version: _, ...features } = featuresOf(version);
  return Object.entries(features)
    .filter(([, has]) => has)
    .map(([name]) => name)
    .join(" ");
};

test.each([
  ["9.1", ""],
  ["9.2", "remoteSubnet"],
  ["9.3", "dsr remoteSubnet"],
  ["9.20", "dsr remoteSubnet"],
  ["10.1", "remoteSubnet"],
  ["10.2", "dsr remoteSubnet"],
  ["11.9", "dsr remoteSubnet"],
  ["11.10", "dsr dualStack remoteSubnet"],
  ["12.0", "dsr dualStack remoteSubnet sessionAffinity"],
  ["15.4", "dsr dualStack remoteSubnet sessionAffinity"],
  ["15.5", "dsr dualStack remoteSubnet sessionAffinity modifyLoadBalancer"],
  ["16.0", "dsr dualStack remoteSubnet sessionAffinity modifyLoadBalancer"],
])("HNS %s has: %s", (version, features) => {
  expect(at(version)).toBe(features);
});

test.each([[undefined], [{}], [{ Major: "9", Minor: 2 }], [[9, 2]]])("%j is no version", (output) => {
  expect(readVersion(output)).toBeUndefined();
});

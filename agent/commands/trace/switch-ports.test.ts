import { expect, test } from "vitest";
import { ip, portNamed, recordedPorts } from "./recorded-trace.ts";
import { findPod } from "./switch-ports.ts";

test("a pod is found by name and namespace, by a name that is the only one, and by address", () => {
  expect(findPod(recordedPorts, "default/web")).toEqual({ t: "pod", port: portNamed("p1"), ips: [ip("10.10.1.2")] });
  expect(findPod(recordedPorts, "db")).toEqual({ t: "pod", port: portNamed("p2"), ips: [ip("10.10.1.3")] });
  expect(findPod(recordedPorts, "fd00:0::4")).toEqual({ t: "pod", port: portNamed("p3"), ips: [ip("fd00::4")] });
  expect(findPod(recordedPorts, "web")).toEqual({ t: "several", names: ["default/web", "shop/web"] });
  expect(findPod(recordedPorts, "10.10.9.9")).toEqual({ t: "address", ip: ip("10.10.9.9") });
  expect(findPod(recordedPorts, "default/we")).toEqual({ t: "none", near: ["default/web", "shop/web", "shop/db"] });
});

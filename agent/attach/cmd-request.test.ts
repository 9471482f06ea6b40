import { describe, expect, test } from "vitest";
import type { CniError } from "../../shared/errors.ts";
import { type CmdRequest, type CmdVerb, parseCmdRequest } from "./cmd-request.ts";

interface Given {
  readonly containerId?: string;
  readonly netns?: string;
  readonly ifname?: string;
  readonly args?: string;
  readonly conf?: Readonly<Record<string, unknown>> | string;
}

const guid = "5a5a5a5a-0000-4000-8000-000000000001";

function parse(verb: CmdVerb, given: Given = {}, dataPath: "bridge" | "hns" = "bridge"): CmdRequest {
  const { containerId = "c1", netns = "/run/netns/x", ifname = "eth0", args = "", conf = { name: "pods" } } = given;
  const text = typeof conf === "string" ? conf : JSON.stringify({ cniVersion: "1.1.0", ...conf });
  const networkConfiguration = new TextEncoder().encode(text);
  return parseCmdRequest(
    { cniArgs: { containerId, netns, ifname, args, path: "", networkConfiguration } },
    verb,
    dataPath,
  );
}

function refusal(run: () => unknown): Pick<CniError, "code" | "message"> {
  try {
    run();
  } catch (caught) {
    return caught as CniError;
  }
  throw new Error("It was taken");
}

test("is read: whose it is, of which container and pod, with its arguments and configuration", () => {
  const args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=u1";
  const read = parse("ADD", { args });
  expect(read).toMatchObject({
    owner: { network: "pods", sandboxId: "c1", ifname: "eth0" },
    container: { id: "c1", netns: "/run/netns/x", kind: { t: "sandbox" } },
    args,
    pod: { namespace: "default", name: "web", uid: "u1" },
    version: "1.1.0",
  });
  expect(read.conf.string("name")).toBe("pods");
  expect(parse("ADD").pod).toBeUndefined();
});

describe("is refused", () => {
  test("without arguments", () => {
    expect(refusal(() => parseCmdRequest({}, "ADD", "bridge"))).toMatchObject({
      code: 4,
      message: 'Cannot read the ADD request: "cni_args" is missing, wanted the arguments of the call',
    });
  });

  test.each<[string, Given, number, string]>([
    ["an empty id", { containerId: "" }, 4, '"container_id" is'],
    ["an id that leads out of a directory", { containerId: "../a" }, 4, '"container_id" is'],
    ["an interface that no kernel takes", { ifname: "much-too-long-name" }, 4, '"ifname" is'],
    ["no network", { conf: {} }, 7, '"name"'],
    ["a network that is no name", { conf: { name: "a/b" } }, 7, '"name"'],
    ["a configuration that is none", { conf: "{" }, 6, "JSON"],
  ])("with every verb: %s", (_what, given, code, message) => {
    for (const verb of ["ADD", "CHECK", "DEL"] as const) {
      const { code: is, message: text } = refusal(() => parse(verb, given));
      expect([verb, is, text]).toEqual([verb, code, expect.stringContaining(message)]);
    }
  });

  test.each<[string, string]>([
    ["no path", ""],
    ["a relative one", "run/netns/x"],
    ["one that the kernel reads another way", "/run/netns/x\0y"],
    ["one that is too long", `/${"n".repeat(4095)}`],
  ])("a namespace but of a DEL, which needs none: %s", (_what, netns) => {
    for (const verb of ["ADD", "CHECK"] as const)
      expect(refusal(() => parse(verb, { netns }))).toMatchObject({
        code: 4,
        message: expect.stringContaining("wanted the absolute path of a network namespace"),
      });
    expect(parse("DEL", { netns }).container.netns).toBe(netns);
  });

  test.each(["9.9", "1.1"])('the version "%s", but of a DEL', (cniVersion) => {
    const conf = { name: "pods", cniVersion };
    for (const verb of ["ADD", "CHECK"] as const)
      expect(refusal(() => parse(verb, { conf }))).toMatchObject({
        code: 1,
        message: expect.stringContaining(`"cniVersion" is "${cniVersion}", wanted one of 0.1.0`),
      });
    expect(parse("DEL", { conf }).version).toBe("1.1.0");
  });
});

test("a configuration without a version has the first one", () => {
  expect(parse("ADD", { conf: { name: "pods", cniVersion: "" } }).version).toBe("0.1.0");
});

test("the longest path that the kernel takes is taken", () => {
  expect(parse("ADD", { netns: `/${"n".repeat(4094)}` }).container.netns).toHaveLength(4095);
});

test("on Windows a namespace has one of three forms, and a workload is of its sandbox", () => {
  expect(parse("ADD", { netns: guid }, "hns").container.kind).toEqual({ t: "sandbox", namespace: guid });
  expect(parse("ADD", { netns: "none" }, "hns").container.kind).toEqual({ t: "sandbox" });
  const workload = parse("ADD", { containerId: "w", netns: "container:s" }, "hns");
  expect([workload.owner.sandboxId, workload.container.id]).toEqual(["s", "w"]);
  expect(refusal(() => parse("ADD", { netns: "/run/netns/x" }, "hns"))).toMatchObject({ code: 4 });
  // A DEL always finishes.
  expect(parse("DEL", { netns: "/run/netns/x" }, "hns").owner.sandboxId).toBe("c1");
});

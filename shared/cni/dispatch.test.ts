import { describe, expect, test } from "vitest";
import { CniError } from "../errors.ts";
import { type PluginIo, runPlugin, type VerbTable } from "./dispatch.ts";

interface Outcome {
  readonly status: number;
  readonly out: Record<string, unknown> | undefined;
}

const add = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "c1",
  CNI_NETNS: "/run/netns/a",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
};

async function run(env: Record<string, string>, stdin: string, verbs: Partial<VerbTable> = {}): Promise<Outcome> {
  const written: string[] = [];
  const io: PluginIo = {
    env,
    readStdin: async () => new TextEncoder().encode(stdin),
    writeResult: async (text) => void written.push(text),
    log: () => undefined,
  };
  const silent = async (): Promise<undefined> => undefined;
  const status = await runPlugin({ ADD: silent, DEL: silent, CHECK: silent, GC: silent, STATUS: silent, ...verbs }, io);
  expect(written.length).toBeLessThanOrEqual(1);
  return { status, out: written[0] === undefined ? undefined : JSON.parse(written[0]) };
}

const conf = '{"cniVersion":"1.0.0","name":"net"}';

describe("runPlugin", () => {
  test("passes a checked request to the verb and prints its answer", async () => {
    const outcome = await run(add, conf, {
      ADD: async (request) =>
        JSON.stringify({ network: request.network, id: request.env.containerId, version: request.version }),
    });
    expect(outcome).toEqual({ status: 0, out: { network: "net", id: "c1", version: "1.0.0" } });
  });

  test("VERSION echoes the input's version and needs nothing else", async () => {
    const outcome = await run({ CNI_COMMAND: "VERSION", CNI_CONTAINERID: "" }, '{"cniVersion":"0.4.0"}');
    expect(outcome.status).toBe(0);
    expect(outcome.out).toMatchObject({ cniVersion: "0.4.0" });
    expect(outcome.out?.["supportedVersions"]).toContain("1.1.0");
  });

  test("names every missing variable in one error", async () => {
    const outcome = await run({ CNI_COMMAND: "ADD", CNI_IFNAME: "eth0" }, conf);
    expect(outcome.status).not.toBe(0);
    expect(outcome.out).toMatchObject({ code: 4, cniVersion: "1.1.0" });
    expect(outcome.out?.["msg"]).toContain("CNI_CONTAINERID, CNI_NETNS are missing");
  });

  test.each([
    [{ ...add, CNI_COMMAND: "add" }, conf, 4, 'CNI_COMMAND is "add"'],
    [{ ...add, CNI_CONTAINERID: "../x" }, conf, 4, 'CNI_CONTAINERID is "../x"'],
    [{ ...add, CNI_IFNAME: "a/b" }, conf, 4, 'CNI_IFNAME is "a/b"'],
    [{ ...add, CNI_IFNAME: "0123456789abcdef" }, conf, 4, "of 16 bytes"],
    [{ ...add, CNI_IFNAME: ".." }, conf, 4, 'CNI_IFNAME is ".."'],
    [add, "", 6, "it is empty"],
    [add, "{", 6, "wanted one JSON object"],
    [add, '{"cniVersion":"1.0"}', 1, '"cniVersion" is "1.0"'],
    [add, '{"cniVersion":"1.0.0"}', 7, '"name" is missing'],
    [add, '{"cniVersion":"1.0.0","name":"../x"}', 7, '"name" is "../x"'],
    [add, '{"cniVersion":5,"name":"x"}', 7, '"cniVersion" is 5'],
    [{ ...add, CNI_COMMAND: "CHECK" }, '{"cniVersion":"0.3.1","name":"x"}', 1, "Cannot run CHECK"],
    [{ CNI_COMMAND: "STATUS" }, '{"cniVersion":"1.0.0","name":"x"}', 1, "Cannot run STATUS"],
    [{ CNI_COMMAND: "GC", CNI_PATH: "/x" }, '{"cniVersion":"1.0.0","name":"x"}', 1, "Cannot run GC"],
    [{ CNI_COMMAND: "GC" }, '{"cniVersion":"1.1.0","name":"x"}', 4, "CNI_PATH is missing"],
  ])("refuses %j with %j: code %i", async (env, stdin, code, part) => {
    const outcome = await run(env as Record<string, string>, stdin);
    expect(outcome.status).toBe(1);
    expect(outcome.out).toMatchObject({ code });
    expect(outcome.out?.["msg"]).toContain(part);
    expect(outcome.out).toHaveProperty("details");
  });

  test("a fault of ours is still one error object, in the configuration's version", async () => {
    const outcome = await run(add, conf, {
      ADD: async () => {
        throw new TypeError("x is undefined");
      },
    });
    expect(outcome.status).toBe(1);
    expect(outcome.out).toMatchObject({ cniVersion: "1.0.0", code: 100 });
  });

  test("a verb's own error keeps its code and details", async () => {
    const outcome = await run(add, conf, {
      ADD: async () => {
        throw new CniError(11, "Cannot reach the agent", { details: "try again" });
      },
    });
    expect(outcome.out).toEqual({ cniVersion: "1.0.0", code: 11, msg: "Cannot reach the agent", details: "try again" });
  });
});

import { beforeAll, describe, expect, test } from "vitest";
import { compileExecutables, errorOf, run, scratch, variables } from "./plugin.ts";
import { type ScriptedAgent, startScriptedAgent } from "./scripted-agent.ts";

beforeAll(compileExecutables);

interface Bad {
  /** What is wrong with it. */
  readonly is: string;
  readonly code: number;
  /** The error must hold each: the field, the value, what was wanted. */
  readonly says: readonly string[];
  readonly verb?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Keys put over a configuration that would do, or the text of one. */
  readonly conf?: Readonly<Record<string, unknown>> | string;
  readonly redirect?: string;
  /** What only concerns the addresses the agent reads, and answers before it touches anything. */
  readonly byAgent?: boolean;
}

const configuration: readonly Bad[] = [
  { is: "no configuration", code: 6, conf: "", says: ["it is empty", "wanted one JSON object"] },
  { is: "a closed stdin", code: 6, redirect: "<&-", says: ["it is empty", "wanted one JSON object"] },
  { is: "/dev/null as stdin", code: 6, redirect: "</dev/null", says: ["it is empty"] },
  { is: "a directory as stdin", code: 5, redirect: "</", says: ["Cannot read standard input", "wanted"] },
  { is: "half a JSON object", code: 6, conf: '{"cniVersion":"1.1.0",', says: ["wanted one JSON object"] },
  { is: "a JSON array", code: 6, conf: "[1,2]", says: ["an array", "wanted one JSON object"] },
  { is: "two JSON objects", code: 6, conf: "{}{}", says: ["wanted one JSON object"] },
  { is: "half a million brackets", code: 6, conf: "[".repeat(500_000), says: ["wanted one JSON object"] },
  {
    is: "10 MB of JSON",
    code: 6,
    conf: `{"x":"${"y".repeat(10_000_000)}"}`,
    says: ["longer than 1048576 bytes"],
  },
  { is: "endless input", code: 6, redirect: "</dev/zero", says: ["longer than 1048576 bytes"] },
  { is: "bytes that are no UTF-8", code: 6, redirect: "</bin/true", says: ["wanted one JSON object"] },
  { is: "no name", code: 7, conf: { name: undefined }, says: ['"name" is missing'] },
  { is: "a name with a separator", code: 7, conf: { name: "../n" }, says: ['"name" is "../n"', "wanted"] },
  { is: "a name that is a number", code: 7, conf: { name: 5 }, says: ['"name" is 5', "a string"] },
  {
    is: "a cniVersion that is a number",
    code: 7,
    conf: { cniVersion: 1.1 },
    says: ['"cniVersion" is 1.1', "a string"],
  },
  { is: "an unknown version", code: 1, conf: { cniVersion: "1.2.0" }, says: ['"1.2.0"', "wanted one of", "1.1.0"] },
  { is: "a version with two parts", code: 1, conf: { cniVersion: "1.0" }, says: ['"1.0"', "wanted one of"] },
  { is: "a type with a slash", code: 7, conf: { type: "../pipette" }, says: ['"type" is "../pipette"', "wanted"] },
  { is: "a type with a backslash", code: 7, conf: { type: "..\\pipette" }, says: ['"type" is "..', "wanted"] },
  { is: "a type that is a list", code: 7, conf: { type: ["pipette"] }, says: ['"type" is an array', "a string"] },
  {
    is: "an ipam.type with a slash",
    code: 7,
    conf: { ipam: { type: "a/b" } },
    says: ['"ipam.type" is "a/b"', "wanted"],
  },
  {
    is: "an ipam.type with a backslash",
    code: 7,
    conf: { ipam: { type: "a\\b" } },
    says: ['"ipam.type" is "a', "wanted"],
  },
  { is: "an ipam.type that is ..", code: 7, conf: { ipam: { type: ".." } }, says: ['"ipam.type" is ".."', "wanted"] },
  { is: "an ipam.type that is a number", code: 7, conf: { ipam: { type: 1 } }, says: ['"ipam.type" is 1', "a string"] },
  { is: "an ipam that is a list", code: 7, conf: { ipam: [] }, says: ['"ipam" is []', "an object"] },
  { is: "a relative socket", code: 7, conf: { socket: "cni.sock" }, says: ['"socket" is "cni.sock"', "absolute path"] },
  { is: "a socket that is a number", code: 7, conf: { socket: 5 }, says: ['"socket" is 5', "a string"] },
  { is: "an MTU in words", code: 7, conf: { mtu: "1500" }, says: ['"mtu" is "1500"', "a whole number from 68"] },
  { is: "an MTU too small", code: 7, conf: { mtu: 67 }, says: ['"mtu" is 67', "a whole number from 68"] },
  { is: "a deadline of nothing", code: 7, conf: { addTimeoutMs: 0 }, says: ['"addTimeoutMs" is 0', "from 1"] },
  {
    is: "a deadline in words",
    code: 7,
    conf: { delTimeoutMs: "5s" },
    says: ['"delTimeoutMs" is "5s"', "a whole number"],
  },
  { is: "a relative log file", code: 7, conf: { logFile: "x.log" }, says: ['"logFile" is "x.log"', "absolute path"] },
  { is: "an unknown log level", code: 7, conf: { logLevel: "loud" }, says: ['"logLevel" is "loud"', "debug"] },
  { is: "a relative dataDir", code: 7, conf: { dataDir: "x" }, says: ['"dataDir" is "x"', "absolute path"] },
  { is: "dns that is a text", code: 7, conf: { dns: "10.0.0.10" }, says: ['"dns" is "10.0.0.10"', "an object"] },
  {
    is: "a name server that is a number",
    code: 7,
    conf: { dns: { nameservers: ["10.0.0.10", 10] } },
    says: ['"dns.nameservers[1]" is 10', "a string"],
  },
  {
    is: "runtimeConfig that is a list",
    code: 7,
    conf: { runtimeConfig: [] },
    says: ['"runtimeConfig" is []', "an object"],
  },
  {
    is: "a hardware address that is none",
    code: 7,
    conf: { runtimeConfig: { mac: "0a:58" } },
    says: ['"runtimeConfig.mac" is "0a:58"', "a hardware address"],
  },
  {
    is: "an ill-typed key in other case",
    code: 7,
    conf: { RuntimeConfig: { MAC: 7 } },
    says: ['"runtimeConfig.mac" is 7', "a string"],
  },
  { is: "a reserved key", code: 7, conf: { ipamResult: {} }, says: ['"ipamResult" is {}', "no such key"] },
  { is: "a prevResult that is a text", code: 7, conf: { prevResult: "x" }, says: ['"prevResult" is "x"', "an object"] },
  {
    is: "a prevResult with an address that is none",
    code: 7,
    conf: { prevResult: { ips: [{ address: "10.1.0.300/24" }] } },
    says: ['"prevResult.ips[0].address" is "10.1.0.300/24"', "wanted"],
  },
];

const environment: readonly Bad[] = [
  { is: "an empty CNI_COMMAND", code: 4, env: { CNI_COMMAND: "" }, says: ['CNI_COMMAND is ""', "ADD, DEL, CHECK"] },
  {
    is: "an unknown CNI_COMMAND",
    code: 4,
    env: { CNI_COMMAND: "add" },
    says: ['CNI_COMMAND is "add"', "wanted one of"],
  },
  {
    is: "no CNI_CONTAINERID",
    code: 4,
    env: { CNI_CONTAINERID: undefined },
    says: ["CNI_CONTAINERID is missing", "ADD"],
  },
  { is: "an empty CNI_IFNAME", code: 4, env: { CNI_IFNAME: "" }, says: ["CNI_IFNAME is missing"] },
  {
    is: "two variables missing",
    code: 4,
    env: { CNI_NETNS: undefined, CNI_IFNAME: undefined },
    says: ["CNI_NETNS, CNI_IFNAME are missing"],
  },
  {
    is: "a container id with a slash",
    code: 4,
    env: { CNI_CONTAINERID: "a/b" },
    says: ['CNI_CONTAINERID is "a/b"', "wanted"],
  },
  { is: "a container id with a dot first", code: 4, env: { CNI_CONTAINERID: ".a" }, says: ['CNI_CONTAINERID is ".a"'] },
  {
    is: "an interface name of 16 bytes",
    code: 4,
    env: { CNI_IFNAME: "a".repeat(16) },
    says: ["16 bytes", "1 to 15 bytes"],
  },
  { is: "an interface name with a colon", code: 4, env: { CNI_IFNAME: "eth0:1" }, says: ['CNI_IFNAME is "eth0:1"'] },
  { is: "an interface name that is ..", code: 4, env: { CNI_IFNAME: ".." }, says: ['CNI_IFNAME is ".."'] },
  { is: "an interface name with a blank", code: 4, env: { CNI_IFNAME: "eth 0" }, says: ['CNI_IFNAME is "eth 0"'] },
  {
    is: "a pattern of the kernel as interface",
    code: 4,
    env: { CNI_IFNAME: "eth%d" },
    says: ['CNI_IFNAME is "eth%d"'],
  },
  { is: "an interface name that commands", code: 4, env: { CNI_IFNAME: "e\u001b[2J" }, says: ["CNI_IFNAME is"] },
  {
    is: "a relative namespace",
    code: 4,
    env: { CNI_NETNS: "netns/x" },
    says: ['CNI_NETNS is "netns/x"', "absolute path"],
  },
  {
    is: "CNI_ARGS without a value",
    code: 4,
    env: { CNI_ARGS: "IP" },
    says: ["part 1 has no KEY=", "wanted KEY=VALUE"],
    byAgent: true,
  },
  { is: "GC without CNI_PATH", verb: "GC", code: 4, env: { CNI_PATH: "" }, says: ["CNI_PATH is missing", "GC"] },
];

const verbs: readonly Bad[] = [
  { is: "GC without its list", verb: "GC", code: 7, says: ['"cni.dev/valid-attachments" is missing', "wanted"] },
  {
    is: "GC with an entry without interface",
    verb: "GC",
    code: 7,
    conf: { "cni.dev/valid-attachments": [{ containerID: "a" }] },
    says: ['"cni.dev/valid-attachments[0].ifname" is missing'],
  },
  {
    is: "GC with a list that is none",
    verb: "GC",
    code: 7,
    conf: { "cni.dev/valid-attachments": "all" },
    says: ['"cni.dev/valid-attachments" is "all"', "an array"],
  },
  { is: "CHECK without prevResult", verb: "CHECK", code: 7, says: ['"prevResult" is missing'] },
  {
    is: "CHECK in 0.3.1",
    verb: "CHECK",
    code: 1,
    conf: { cniVersion: "0.3.1" },
    says: ['"0.3.1"', '"0.4.0" or later'],
  },
  { is: "GC in 1.0.0", verb: "GC", code: 1, conf: { cniVersion: "1.0.0" }, says: ['"1.0.0"', '"1.1.0" or later'] },
  {
    is: "STATUS in 1.0.0",
    verb: "STATUS",
    code: 1,
    conf: { cniVersion: "1.0.0" },
    says: ['"1.0.0"', '"1.1.0" or later'],
  },
];

describe.each([
  ["section 1 Network configuration", configuration],
  ["section 2 Parameters", environment],
  ["section 2 CNI operations", verbs],
])("%s", (_, table) => {
  test.each(table.map((bad) => [bad.is, bad] as const))(
    "%s is named in the error and changes nothing",
    async (_is, bad) => {
      using directory = scratch();
      await using agent = await startScriptedAgent();
      const stdin = typeof bad.conf === "string" ? bad.conf : { ...confIn(directory.path, agent), ...bad.conf };
      const env = { ...variables(bad.verb ?? "ADD"), ...bad.env };
      const redirect = bad.redirect === undefined ? {} : { redirect: bad.redirect };
      const error = errorOf(await run({ env, stdin, cwd: directory.path, ...redirect }));
      expect(error).toMatchObject({ code: bad.code });
      for (const part of bad.says) expect(error.msg).toContain(part);
      expect(error.msg.length).toBeLessThan(1000);
      expect(directory.files()).toEqual([]);
      expect(agent.asked).toHaveLength(bad.byAgent ? 1 : 0);
    },
  );
});

/** A configuration that would do, with everything that it may write inside `directory`. */
function confIn(directory: string, agent: ScriptedAgent): Record<string, unknown> {
  return {
    cniVersion: "1.1.0",
    name: "n",
    type: "pipette",
    socket: agent.socket,
    dataDir: `${directory}/departures`,
    ipam: { type: "pipette-ipam", dataDir: `${directory}/leases`, ranges: [[{ subnet: "10.1.0.0/24" }]] },
  };
}

test("section 1 Network configuration: the configuration of this table, with unknown keys, is accepted", async () => {
  using directory = scratch();
  await using agent = await startScriptedAgent();
  const stdin = { ...confIn(directory.path, agent), comment: "mine", args: { labels: [] }, "cni.dev/x": 1 };
  const ended = await run({ env: variables("ADD"), stdin });
  expect([ended.status, JSON.parse(ended.stdout)]).toMatchObject([0, { ips: [{ address: "10.1.0.2/24" }] }]);
});

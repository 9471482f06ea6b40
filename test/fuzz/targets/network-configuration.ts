import { isWorkload, requireNetns } from "../../../cni/call.ts";
import { previousResult } from "../../../cni/chain.ts";
import { parseDelegateResult } from "../../../cni/delegate.ts";
import { parseNetConf, parseNetConfLeniently } from "../../../cni/net-conf.ts";
import { dataDirOf, parseAnyRanges, parseIpamConfig } from "../../../ipam/config/ipam-config.ts";
import { parseArgs, podOf } from "../../../shared/cni/args.ts";
import { type CniRequest, type PluginIo, runPlugin, type VerbTable } from "../../../shared/cni/dispatch.ts";
import { encodeResult, parseResult } from "../../../shared/cni/result.ts";
import { validAttachments } from "../../../shared/cni/valid-attachments.ts";
import { type CniVersion, parseVersion, supportedVersions } from "../../../shared/cni/versions.ts";
import { redactArgs, redactConf } from "../../../shared/log.ts";
import { Fields, isObject } from "../../../shared/schema/json-fields.ts";
import { allocatorInMemory, ownerOf } from "../../fakes/allocator-in-memory.ts";
import type { Target } from "../engine/target.ts";
import { jsonMutator } from "../mutate/json.ts";
import { requireSchema } from "./schema.ts";
import { jsonOf, refusable, requireHarmless, requireSentence, textOf } from "./words.ts";

const words = [
  ...["cniVersion", "name", "type", "ipam", "ranges", "subnet", "rangeStart", "rangeEnd", "gateway", "routes", "dst"],
  ...[
    "gw",
    "mtu",
    "exclude",
    "sticky",
    "cooldownMs",
    "dataDir",
    "resolvConf",
    "runtimeConfig",
    "ipRanges",
    "ips",
    "mac",
  ],
  ...["dns", "nameservers", "search", "options", "domain", "args", "cni", "prevResult", "interfaces", "address"],
  ...["interface", "sandbox", "socket", "addTimeoutMs", "delTimeoutMs", "logFile", "logLevel", "ipamResult"],
  ...["cni.dev/valid-attachments", "cni.dev/attachments", "containerID", "ifname", "pipette", "pipette-ipam"],
  ...["host-local", "1.1.0", "1.0.0", "0.4.0", "0.3.1", "0.2.0", "ip4", "ip6", "portMappings", "HostPort"],
  ...["__proto__", "constructor", "prototype", "disableCheck", "disableGC", "plugins", "capabilities"],
];
const variables = ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"];
const values = [
  ...["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION", "/var/run/netns/a", "eth0", "IgnoreUnknown=1;K8S_POD_NAME=a"],
  ...["K8S_POD_NAMESPACE=b", "K8S_POD_UID=c", "IP=10.1.0.9", "/opt/cni/bin:/usr/lib/cni", ";", "=", ":"],
];

/** What the verbs do with what they get, as far as it is reading. */
function read(request: CniRequest): undefined {
  const { conf, network, version, env } = request;
  parseNetConfLeniently(conf, (problem) => requireSentence(problem, "a complaint"));
  dataDirOf(conf);
  redactConf(conf.raw);
  podOf(env.args);
  requireHarmless(
    JSON.stringify(redactArgs(env.args))
      .slice(0, 100)
      .replaceAll(/[\p{C}\p{Z}]/gu, ""),
    "a log line",
  );
  if (env.command === "DEL") return;
  if (env.command === "GC") return void validAttachments(conf);
  parseNetConf(conf);
  if (env.command !== "STATUS") requireNetns(env);
  isWorkload(env);
  const previous = previousResult(request);
  if (previous !== undefined) requireRoundTrip(encodeResult(previous, version), version);
  parseAnyRanges({ conf, network, version, args: "" });
  const config = parseIpamConfig({ conf, network, version, args: env.args });
  requireSchema(conf.raw);
  // What was taken can be worked with.
  const { allocator } = allocatorInMemory();
  for (const id of ["a", "b", "c"]) refusable(() => allocator.allocate(ownerOf(id), config));
  refusable(() => allocator.usage(network, config));
}

/** What is written is read as the same, in every version from 0.3.0 on, which all can say it. */
function requireRoundTrip(text: string, version: CniVersion): void {
  if (version === "0.1.0" || version === "0.2.0") return;
  const again = encodeResult(parseResult(Fields.parse(text), version), version);
  if (again !== text) throw new Error(`A result is written as ${text} and again as ${again}`);
}

const verbs: VerbTable = {
  ADD: async (request) => read(request),
  DEL: async (request) => read(request),
  CHECK: async (request) => read(request),
  GC: async (request) => read(request),
  STATUS: async (request) => read(request),
};

/** One whole call: nothing but one JSON object comes out, and where it failed that is an error of the specification. */
async function call(env: PluginIo["env"], stdin: string): Promise<void> {
  const written: string[] = [];
  const status = await runPlugin(verbs, {
    env,
    readStdin: async () => new TextEncoder().encode(stdin),
    writeResult: async (text) => void written.push(text),
    log: (line) => requireHarmless(line, "a line of the log"),
  });
  if (status === 0) return;
  const [text = "", ...more] = written;
  const error = JSON.parse(text) as Record<string, unknown>;
  if (more.length > 0 || typeof error["code"] !== "number" || typeof error["msg"] !== "string")
    throw new Error(`A call ends with ${text}, wanted one error`);
  try {
    requireSentence(error["msg"], "the error of a call");
    if (error["code"] === 100) throw new Error("an internal error");
  } catch (wrong) {
    throw new Error((wrong as Error).message, {
      cause: new Error(`${error["msg"]}\n${error["details"]}`.slice(0, 2000)),
    });
  }
}

const usual = {
  CNI_COMMAND: "ADD",
  CNI_CONTAINERID: "a1",
  CNI_NETNS: "/var/run/netns/a",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/b",
};

export const networkConfiguration: Target = {
  name: "network-configuration",
  what: "the configuration on standard input, for every verb",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 64 * 1024,
  open: () => ({
    run: async (input) => {
      const text = textOf(input);
      for (const command of ["ADD", "DEL", "GC"]) await call({ ...usual, CNI_COMMAND: command }, text);
    },
  }),
};

/** `{"env": {…}, "stdin": {…}}`. */
export const cniVariables: Target = {
  name: "cni-variables",
  what: "CNI_ARGS and all other CNI_* variables",
  mutators: [jsonMutator([...variables, ...values])],
  dictionary: [...variables, ...values],
  maxBytes: 16 * 1024,
  open: () => ({
    run: async (input) => {
      const document = jsonOf(input);
      const { env, stdin } = isObject(document) ? document : { env: { CNI_ARGS: textOf(input) }, stdin: {} };
      const entries = Object.entries(isObject(env) ? env : {}).map(([name, value]) => [name, String(value)]);
      const given: Record<string, string> = Object.fromEntries(entries);
      refusable(() => parseArgs(given["CNI_ARGS"] ?? ""));
      await call(given, typeof stdin === "string" ? stdin : JSON.stringify(stdin ?? {}));
    },
  }),
};

/** A result, as `prevResult` of a configuration in every version. */
export const prevResult: Target = {
  name: "prev-result",
  what: "prevResult, in every version",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 32 * 1024,
  open: () => ({
    run: (input) => {
      const raw = jsonOf(input);
      for (const version of supportedVersions) {
        const result = refusable(() =>
          parseResult(new Fields({ prevResult: raw }).object("prevResult") ?? new Fields({}), version),
        );
        if (result !== undefined) requireRoundTrip(encodeResult(result, version), version);
      }
    },
  }),
};

export const delegateResult: Target = {
  name: "delegate-result",
  what: "what a delegated plugin writes",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 32 * 1024,
  open: () => ({
    run: (input) => {
      const text = textOf(input);
      for (const given of ["0.2.0", "0.4.0", "1.1.0"]) {
        const version = parseVersion(given) as CniVersion;
        const result = refusable(() => parseDelegateResult(text, "other-ipam", version));
        if (result !== undefined) encodeResult(result, version);
      }
    },
  }),
};

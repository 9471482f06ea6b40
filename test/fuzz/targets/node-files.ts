import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse as parseYaml, stringify } from "yaml";
import { textOfNode } from "../../../agent/cluster/node-text.ts";
import { RegistryCache } from "../../../agent/cluster/registry-cache.ts";
import { readNodeFile } from "../../../agent/cluster/static/node-file.ts";
import { nodeUid } from "../../../agent/cluster/this-node.ts";
import { parseRuntimeList } from "../../../agent/commands/doctor/runtime-list.ts";
import { planUnconfigure } from "../../../agent/commands/install/runtime-configuration.ts";
import { parseAgentConfig } from "../../../agent/config/parse-agent-config.ts";
import { conflistText } from "../../../agent/conflist/conflist.ts";
import { HostRecord, hostRecords, savedAdapter } from "../../../agent/datapath/hns/windows-host/record.ts";
import { readServices } from "../../../agent/services/service-file.ts";
import { parseAnyRanges } from "../../../ipam/config/ipam-config.ts";
import { readSettingsFile } from "../../../ipam/config/settings-file.ts";
import { createLogger } from "../../../shared/log.ts";
import { Fields } from "../../../shared/schema/json-fields.ts";
import type { Opened, Target } from "../engine/target.ts";
import { jsonMutator, treeMutator } from "../mutate/json.ts";
import { refusable, requireCniError, requireHarmless, textOf } from "./words.ts";

const words = [
  ...[
    "socket",
    "dataDir",
    "logLevel",
    "cni",
    "confDir",
    "fileName",
    "cniVersion",
    "cniVersions",
    "plugins",
    "dataPath",
  ],
  ...[
    "networks",
    "name",
    "subnets",
    "bridge",
    "mtu",
    "hairpin",
    "masquerade",
    "exclude",
    "sticky",
    "hns",
    "ovs",
    "mode",
  ],
  ...["hybrid", "encap", "noEncap", "policyOnly", "nodes", "registry", "static", "etcd", "kubernetes", "endpoints"],
  ...[
    "addresses",
    "mac",
    "uid",
    "tenants",
    "services",
    "clusterIp",
    "ports",
    "port",
    "protocol",
    "endpoints",
    "items",
    "id",
  ],
  ...[
    "version",
    "self",
    "refused",
    "ranges",
    "subnet",
    "entries",
    "adapter",
    "step",
    "thing",
    "before",
    "network",
    "gateway",
  ],
  ...[
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "!!js/function",
    "? ",
    "- ",
    ": ",
    "|",
    "---",
    "...",
    "%YAML 1.1",
    "~",
    "0o17",
    ".inf",
  ],
  ...["__proto__", "constructor", "bridge", "cni.dev/valid-attachments", "containerID", "ifname"],
];

const yamlMutator = treeMutator(words, {
  parse: (text) => parseYaml(text, { logLevel: "silent" }),
  format: (value) => stringify(value),
});

type ReadText = { readonly t: "ok" } | { readonly t: "wrong"; readonly problems: readonly string[] };

/** Every fault in one line with its place, or none at all. */
function requireProblems(read: ReadText): boolean {
  if (read.t === "ok") return true;
  if (read.problems.length === 0) throw new Error("A file is refused without a word");
  for (const problem of read.problems) {
    requireHarmless(problem, "a problem of a file");
    if (!problem.startsWith("f.yaml:")) throw new Error("A problem of a file names no file");
  }
  return false;
}

export const agentConfiguration: Target = {
  name: "agent-configuration",
  what: "agent.yaml",
  mutators: [yamlMutator],
  dictionary: words,
  maxBytes: 8 * 1024,
  open: () => ({
    run: (input) => {
      const read = parseAgentConfig(textOf(input), "f.yaml");
      if (!requireProblems(read) || read.t !== "ok") return;
      for (const network of read.config.networks)
        conflistText(read.config, network, {
          plugins: read.config.cni.plugins ?? [],
          versions: read.config.cni.cniVersions ?? [],
        });
    },
  }),
};

export const nodesFile: Target = {
  name: "nodes-file",
  what: "the static file of nodes, and that of services",
  mutators: [yamlMutator, jsonMutator(words)],
  dictionary: words,
  maxBytes: 8 * 1024,
  open: () => ({
    run: (input) => {
      const text = textOf(input);
      const read = readNodeFile(text, "f.yaml");
      if (requireProblems(read) && read.t === "ok") for (const node of read.value.nodes.values()) textOfNode(node);
      requireProblems(readServices(text, "f.yaml", []));
    },
  }),
};

export const runtimeList: Target = {
  name: "runtime-list",
  what: "the runtime's list for pipette doctor",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 16 * 1024,
  open: () => ({
    run: (input) => {
      const list = refusable(() => parseRuntimeList(textOf(input), 1));
      list?.knows({ network: "a", sandboxId: "b", ifname: "c" });
    },
  }),
};

/** A data directory of its own, in which each input becomes the files that a start reads. */
function openFiles(): Opened {
  const directory = mkdtempSync(join(tmpdir(), "pipette-fuzz-files-"));
  mkdirSync(hostRecords(directory), { recursive: true });
  const logger = createLogger("debug", (line) => requireHarmless(line, "a line of the log"));
  const put = (path: string, bytes: Uint8Array): string => {
    writeFileSync(join(directory, path), bytes, { mode: 0o600 });
    return join(directory, path);
  };
  return {
    run: async (input) => {
      put("net.json", input);
      try {
        const settings = await readSettingsFile(directory, "net");
        const conf = new Fields({ ipam: {} });
        if (settings !== undefined) parseAnyRanges({ conf, network: "net", version: "1.0.0", args: "", settings });
      } catch (caught) {
        requireCniError(caught);
      }
      put("node-uid", input);
      refusable(() => nodeUid(directory));
      put("nodes.json", input);
      const { state } = new RegistryCache(directory, "r", logger);
      for (const node of state.nodes.values()) textOfNode(node);
      put("windows-host/pipette.json", input);
      refusable(() => savedAdapter(directory, "pipette"));
      refusable(() => HostRecord.all(directory));
      const conflist = put("10-pipette.conflist", input);
      await planUnconfigure(conflist);
    },
    close: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const nodeRecords: Target = {
  name: "node-records",
  what: "settings file, nodes.json, node-uid, records of a Windows host, conflist",
  mutators: [jsonMutator(words)],
  dictionary: words,
  maxBytes: 16 * 1024,
  open: openFiles,
};

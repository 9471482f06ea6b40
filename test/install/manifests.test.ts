import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { parseAllDocuments, parseDocument } from "yaml";
import { parseAgentConfig } from "../../agent/config/parse-agent-config.ts";
import { installCommand } from "../../agent/install/mod.ts";
import { agentCommand, statusCommand } from "../../agent/mod.ts";
import { linuxPaths } from "../../shared/paths.linux.ts";
import { windowsPaths } from "../../shared/paths.windows.ts";
import type { Command } from "../../shared/terminal/command.ts";
import { parseLine } from "../../shared/terminal/parse-line.ts";
import { version } from "../../shared/version.ts";

interface Container {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly securityContext?: object;
  readonly readinessProbe?: { readonly exec: { readonly command: readonly string[] } };
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly mountPropagation?: string;
  }[];
}

interface DaemonSet {
  readonly apiVersion: string;
  readonly kind: string;
  readonly spec: {
    readonly selector: { readonly matchLabels: object };
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly nodeSelector: object;
        readonly hostNetwork: boolean;
        readonly hostPID?: boolean;
        readonly automountServiceAccountToken: boolean;
        readonly securityContext?: { readonly windowsOptions: object };
        readonly tolerations: readonly object[];
        readonly terminationGracePeriodSeconds: number;
        readonly initContainers: readonly Container[];
        readonly containers: readonly Container[];
        readonly volumes?: readonly { readonly name: string; readonly hostPath: { readonly path: string } }[];
      };
    };
  };
}

/** YAML 1.1, as Kubernetes reads it, without anything that a reader would have to guess at. */
function manifest(name: string): DaemonSet {
  const text = readFileSync(new URL(`../../conf/kubernetes/${name}`, import.meta.url), "utf8");
  const document = parseDocument(text, { version: "1.1" });
  expect([...document.errors, ...document.warnings].map(String)).toEqual([]);
  return document.toJS() as DaemonSet;
}

/** What `sysctlPath` looks for. */
const mountedSysctls = "/host/proc/sys/net";

const commands: Readonly<Record<string, Command>> = {
  agent: agentCommand,
  install: installCommand,
  status: statusCommand,
};

/** The options of a container's command line, read by the program's own parser. */
function optionsOf([, name = "", ...args]: readonly string[]): Readonly<Record<string, unknown>> {
  const command = commands[name];
  if (command === undefined) throw new Error(`"${name}" is no command of pipette`);
  const parsed = parseLine(command, args);
  if (parsed.t !== "line") throw new Error(parsed.t === "wrong" ? parsed.problem : "--help");
  return Object.fromEntries(
    Object.entries(parsed.line.options).filter(
      ([, value]) => value !== undefined && value !== false && String(value) !== "",
    ),
  );
}

const { drainTimeoutMs } = (() => {
  const parsed = parseAgentConfig("networks: [{ name: n, subnets: [10.1.0.0/24], bridge: b }]", "agent.yaml");
  if (parsed.t !== "ok") throw new Error(parsed.problems.join());
  return parsed.config;
})();

describe.each([
  ["linux-daemonset.yaml", "linux", linuxPaths, "/pipette", "/host"],
  ["windows-daemonset.yaml", "windows", windowsPaths, "$env:CONTAINER_SANDBOX_MOUNT_POINT\\pipette.exe", ""],
] as const)("conf/kubernetes/%s", (file, system, paths, executable, mountedAt) => {
  const { apiVersion, kind, spec } = manifest(file);
  const pod = spec.template.spec;
  const [install, agent] = [pod.initContainers[0], pod.containers[0]];
  if (install === undefined || agent === undefined) throw new Error("a container is missing");

  test("is a DaemonSet of the nodes of its system, also of those that are not ready yet", () => {
    expect([apiVersion, kind]).toEqual(["apps/v1", "DaemonSet"]);
    expect(spec.selector.matchLabels).toEqual(spec.template.metadata.labels);
    expect(pod.nodeSelector).toEqual({ "kubernetes.io/os": system });
    expect(pod.tolerations).toEqual([{ operator: "Exists" }]);
    expect(pod.hostNetwork).toBe(true);
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(drainTimeoutMs);
  });

  test("runs one image, of this version, by commands that the program understands", () => {
    expect(new Set([...pod.initContainers, ...pod.containers].map(({ image }) => image)).size).toBe(1);
    expect(agent.image.split(":")[1]).toBe(version);
    expect(optionsOf(install.command)).toEqual({
      "executables-only": true,
      "bin-dir": `${mountedAt}${paths.cniBinDir}`,
    });
    expect(optionsOf(agent.command)).toEqual({ config: paths.agentConfig });
    // Else a node that is only full of pods would hold up every update.
    expect(optionsOf(agent.readinessProbe?.exec.command ?? [])).toEqual({ readiness: true });
    for (const { command } of [install, agent]) expect(command[0]).toBe(executable);
  });
});

test("the Linux pod has every place of the defaults from the host, at its own path", () => {
  const pod = manifest("linux-daemonset.yaml").spec.template.spec;
  const hostPaths = new Map(pod.volumes?.map(({ name, hostPath }) => [name, hostPath.path]));
  const mounts = pod.containers[0]?.volumeMounts ?? [];
  // A container cannot have /proc/sys at its own path.
  for (const { name, mountPath } of mounts) expect(hostPaths.get(name)).toBe(mountPath.replace(/^\/host/, ""));
  const parent = (path: string): string => path.slice(0, path.lastIndexOf("/"));
  const wanted = [
    parent(linuxPaths.agentConfig),
    parent(linuxPaths.agentSocket),
    linuxPaths.dataDir,
    linuxPaths.cniConfDir,
    // To see which plugins there are to run after ours.
    linuxPaths.cniBinDir,
  ];
  expect(mounts.map(({ mountPath }) => mountPath).sort()).toEqual([...wanted, "/var/run/netns", mountedSysctls].sort());
  expect(mounts.find(({ mountPath }) => mountPath === "/var/run/netns")?.mountPropagation).toBe("HostToContainer");
  expect(hostPaths.get(pod.initContainers[0]?.volumeMounts?.[0]?.name ?? "")).toBe(linuxPaths.cniBinDir);
});

test("no container of the Linux pod has more rights than it needs, which a test shows to be enough", () => {
  const pod = manifest("linux-daemonset.yaml").spec.template.spec;
  const least = {
    runAsUser: 0,
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    seccompProfile: { type: "RuntimeDefault" },
  };
  expect(pod.initContainers.map(({ securityContext }) => securityContext)).toEqual([
    { ...least, capabilities: { drop: ["ALL"] } },
  ]);
  expect(pod.containers.map(({ securityContext }) => securityContext)).toEqual([
    { ...least, capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "SYS_ADMIN"] } },
  ]);
  expect([pod.hostPID, pod.automountServiceAccountToken]).toEqual([undefined, false]);
});

test("the Windows pod is a process of the host, as the user whom the plugin trusts", () => {
  const pod = manifest("windows-daemonset.yaml").spec.template.spec;
  expect(pod.securityContext?.windowsOptions).toEqual({ hostProcess: true, runAsUserName: "NT AUTHORITY\\SYSTEM" });
});

test("the rights for the registry of Kubernetes are the account's that the DaemonSet may run as, and no more than the document says", () => {
  const text = readFileSync(new URL("../../conf/kubernetes/registry-rbac.yaml", import.meta.url), "utf8");
  const documents = parseAllDocuments(text, { version: "1.1" });
  const [account, role, binding, policy, policyBinding] = documents.map((document) => document.toJS());
  const { name, namespace } = account.metadata;
  expect(documents.map((document) => document.get("kind"))).toEqual([
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
  ]);
  // What it says is shown at a real API server: test/kubernetes/agent-rights.test.ts.
  expect(policy.spec).toMatchObject({
    failurePolicy: "Fail",
    matchConstraints: { resourceRules: [{ resources: ["nodes"], operations: ["UPDATE"] }] },
    matchConditions: [{ expression: `request.userInfo.username == "system:serviceaccount:${namespace}:${name}"` }],
  });
  expect(text.match(/"node\.pipette\.io\/mac-address"/g)).toHaveLength(2);
  expect(policyBinding.spec).toEqual({ policyName: policy.metadata.name, validationActions: ["Deny"] });
  expect(binding.subjects).toEqual([{ kind: "ServiceAccount", name, namespace }]);
  expect(binding.roleRef).toEqual({
    apiGroup: "rbac.authorization.k8s.io",
    kind: "ClusterRole",
    name: role.metadata.name,
  });
  const daemonSet = parseDocument(
    readFileSync(new URL("../../conf/kubernetes/linux-daemonset.yaml", import.meta.url), "utf8"),
  ).toJS();
  expect([name, namespace]).toEqual([daemonSet.metadata.name, daemonSet.metadata.namespace]);
  expect(role.rules).toEqual([{ apiGroups: [""], resources: ["nodes"], verbs: ["get", "list", "watch", "patch"] }]);
  const manual = readFileSync(new URL("../../docs/operations.md", import.meta.url), "utf8");
  const stated = /service account may (.*) `nodes`/.exec(manual)?.[1]?.match(/[a-z]+(?=`)/g);
  expect(stated).toEqual(role.rules[0].verbs);
});

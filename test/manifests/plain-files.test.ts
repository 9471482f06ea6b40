import { describe, expect, test } from "vitest";
import { KubernetesRegistry } from "../../agent/cluster/kubernetes/kubernetes-registry.ts";
import { agentCommand } from "../../agent/commands/agent/agent-command.ts";
import { installCommand, uninstallCommand } from "../../agent/commands/install/mod.ts";
import { nodeVariables } from "../../agent/config/nodes-config.ts";
import { parseAgentConfig } from "../../agent/config/parse-agent-config.ts";
import { ClusterServices } from "../../agent/services/cluster-services.ts";
import { controllerCommand } from "../../controller/controller-command.ts";
import { ApiClient, KubernetesEvents, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { linuxPaths } from "../../shared/os/paths.linux.ts";
import { windowsPaths } from "../../shared/os/paths.windows.ts";
import type { Command } from "../../shared/terminal/command.ts";
import { parseLine } from "../../shared/terminal/parse-line.ts";
import { version } from "../../shared/version.ts";
import { ScriptedApiServer } from "../fakes/kubernetes/scripted-api-server.ts";
import { eventually } from "../support/agent-process.ts";
import { type Manifest, object, plainObjects } from "./manifest.ts";

const files = ["pipette.yaml", "pipette-openvswitch.yaml", "pipette-uninstall.yaml"] as const;
const daemonSets = files.flatMap((file) =>
  plainObjects(file)
    .filter(({ kind }) => kind === "DaemonSet")
    .map((object) => ({ file, name: object.metadata.name, object, pod: object["spec"].template.spec })),
);

const commands: Readonly<Record<string, Command>> = {
  agent: agentCommand,
  controller: controllerCommand(() => ({ run: () => Promise.reject(new Error("nobody asks")) })),
  install: installCommand,
  uninstall: uninstallCommand,
};

/** The options of a container's command line, read by the program's own parser. */
function optionsOf([, name = "", ...args]: readonly string[]): Readonly<Record<string, unknown>> {
  const command = commands[name];
  if (command === undefined) throw new Error(`"${name}" is no command of pipette`);
  const parsed = parseLine(command, args);
  if (parsed.t !== "line") throw new Error(parsed.t === "wrong" ? parsed.problem : "--help");
  return Object.fromEntries(Object.entries(parsed.line.options).filter(([, value]) => value && String(value) !== ""));
}

/** The two systems' differences, as far as a manifest shows them. */
const systems = {
  linux: { paths: linuxPaths, executable: "/pipette", config: "/etc/pipette/agent.yaml", binDir: "/host/opt/cni/bin" },
  windows: {
    paths: windowsPaths,
    executable: "$env:CONTAINER_SANDBOX_MOUNT_POINT\\pipette.exe",
    config: "C:\\etc\\pipette\\agent.yaml",
    binDir: "C:\\Program Files\\containerd\\cni\\bin",
  },
} as const;

describe.each(daemonSets)("$name of $file", ({ object: daemonSet, pod }) => {
  const system: keyof typeof systems = pod.os.name;
  const { executable, config, binDir, paths } = systems[system];
  const containers = [...pod.initContainers, ...pod.containers];
  /** What the other system's pods have nothing of is no test of theirs. */
  const ifOf = (which: keyof typeof systems) => (system === which ? test : () => undefined);

  test("has the final selector, which its pods have too", () => {
    const { labels } = daemonSet["spec"].template.metadata;
    const { matchLabels } = daemonSet["spec"].selector;
    expect(matchLabels).toEqual({
      "app.kubernetes.io/name": "pipette",
      "app.kubernetes.io/component": daemonSet.metadata.name.replace("pipette-", ""),
    });
    expect(labels).toMatchObject(matchLabels);
  });

  test("is on every node of its system, also those that are not ready yet", () => {
    expect(pod.nodeSelector).toEqual({ "kubernetes.io/os": system });
    expect([pod.tolerations, pod.hostNetwork]).toEqual([[{ operator: "Exists" }], true]);
    const parsed = parseAgentConfig("networks: [{ name: n, subnets: [10.1.0.0/24], bridge: b }]", "agent.yaml");
    expect(parsed.t === "ok" && pod.terminationGracePeriodSeconds * 1000 > parsed.config.drainTimeoutMs).toBe(true);
  });

  test("has images of this version, which are taken as they are on the node", () => {
    for (const { image, imagePullPolicy } of containers)
      expect([image.split(":")[1], imagePullPolicy]).toEqual([version, "IfNotPresent"]);
  });

  test("is started by commands that the program understands", () => {
    for (const { command } of containers.filter((each) => each.command[0] === executable)) {
      const { config: file, "bin-dir": directory, "libexec-dir": libexec } = optionsOf(command);
      expect([config, undefined]).toContain(file);
      expect([binDir, undefined]).toContain(directory);
      // It starts what lies there on the node.
      const whole = `${libexec}${paths.directorySeparator}pipette${paths.executableSuffix}`.replace(/^\/host/, "");
      if (directory !== undefined) expect(whole).toBe(paths.wholeProgram);
    }
  });

  test("finds every volume, and mounts all that it has", () => {
    const mounted = containers.flatMap((each) => (each.volumeMounts ?? []).map(({ name }: { name: string }) => name));
    expect(new Set(mounted)).toEqual(new Set((pod.volumes ?? []).map(({ name }: { name: string }) => name)));
  });

  ifOf("windows")("is a process of the host, as the user whom the plugin trusts", () => {
    expect(pod.securityContext.windowsOptions).toEqual({ hostProcess: true, runAsUserName: "NT AUTHORITY\\SYSTEM" });
    expect(containers.flatMap(({ securityContext }) => securityContext ?? [])).toEqual([]);
  });

  ifOf("linux")("has no more rights than it needs, which tests show to be enough", () => {
    const rights: Readonly<Record<string, readonly string[]>> = {
      agent: ["NET_ADMIN", "NET_RAW", "SYS_ADMIN"],
      uninstall: ["NET_ADMIN"],
      left: ["NET_ADMIN"],
      "ovs-vswitchd": ["NET_ADMIN"],
    };
    for (const { name, securityContext } of containers)
      expect(securityContext, name).toEqual({
        runAsUser: 0,
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        seccompProfile: { type: "RuntimeDefault" },
        capabilities: { drop: ["ALL"], ...(rights[name] === undefined ? {} : { add: rights[name] }) },
      });
    expect([pod.hostPID, pod.hostIPC]).toEqual([undefined, undefined]);
  });

  test("is asked for its health where its agent answers", () => {
    for (const each of containers.filter(({ name }) => name === "agent")) {
      const { "health-port": port, "follow-config": follows } = optionsOf(each.command);
      const probes = [each.startupProbe, each.livenessProbe, each.readinessProbe].map(({ httpGet }) => httpGet);
      expect(probes).toEqual(
        ["/startupz", "/livez", "/readyz"].map((path) => ({ host: "127.0.0.1", port: Number(port), path })),
      );
      expect(follows).toBe(true);
    }
  });
});

test.each(daemonSets.filter(({ file }) => file !== "pipette-uninstall.yaml"))(
  "every key of the ConfigMap of $name in $file is mounted, and what it says an agent starts with",
  ({ file, name, pod }) => {
    if (name === "pipette-openvswitch") return;
    const { configMap } = pod.volumes.find((volume: { name: string }) => volume.name === "config");
    const { data = {} } = object(plainObjects(file), "ConfigMap", configMap.name);
    const { config, paths } = systems[pod.os.name as keyof typeof systems];
    const mount = pod.containers[0].volumeMounts.find((each: { name: string }) => each.name === "config");
    expect(Object.keys(data).map((key) => `${mount.mountPath}${paths.directorySeparator}${key}`)).toEqual([config]);
    for (const [key, value] of Object.entries({ [nodeVariables.name]: "node-1", [nodeVariables.address]: "192.0.2.1" }))
      process.env[key] = value;
    const parsed = parseAgentConfig(data["agent.yaml"] ?? "", `${file}: agent.yaml`);
    for (const key of Object.values(nodeVariables)) delete process.env[key];
    expect(parsed).toMatchObject({
      t: "ok",
      config: { dataPath: pod.os.name === "windows" ? "hns" : expect.any(String), nodes: { name: "node-1" } },
    });
  },
);

test.each(["pipette.yaml", "pipette-openvswitch.yaml"])(
  "the agent of %s has every place of its configuration from the node, at its own path",
  (file) => {
    const { volumes, containers } = object(plainObjects(file), "DaemonSet", "pipette-agent")["spec"].template.spec;
    const hostPaths = new Map(
      volumes.map(({ name, hostPath }: { name: string; hostPath?: { path: string } }) => [name, hostPath?.path]),
    );
    const mounts: { name: string; mountPath: string; mountPropagation?: string }[] = containers[0].volumeMounts;
    // A container cannot have /proc/sys at its own path.
    for (const { name, mountPath } of mounts.filter(({ name }) => name !== "config"))
      expect(hostPaths.get(name)).toBe(mountPath.replace(/^\/host/, ""));
    const parent = (path: string): string => path.slice(0, path.lastIndexOf("/"));
    const wanted = [
      ...[parent(linuxPaths.agentConfig), parent(linuxPaths.agentSocket), linuxPaths.dataDir, linuxPaths.cniConfDir],
      ...["/var/run/netns", "/host/proc/sys/net", "/opt/cni/bin"],
      ...(file === "pipette.yaml" ? [] : ["/run/openvswitch"]),
    ];
    expect(mounts.map(({ mountPath }) => mountPath).sort()).toEqual(wanted.sort());
    expect(mounts.find(({ name }) => name === "netns")?.mountPropagation).toBe("HostToContainer");
  },
);

test.each(["pipette.yaml", "pipette-openvswitch.yaml"])(
  "the one removal for both has every place that an agent of %s writes to",
  (file) => {
    const mounts = (from: string, name: string): readonly string[] =>
      object(plainObjects(from), "DaemonSet", name)["spec"].template.spec.volumes.flatMap(
        ({ hostPath }: { hostPath?: { path: string } }) => hostPath?.path ?? [],
      );
    const ofAgent = mounts(file, "pipette-agent").filter((path) => !["/proc/sys/net", "/var/run/netns"].includes(path));
    expect(mounts("pipette-uninstall.yaml", "pipette-uninstall")).toEqual(expect.arrayContaining(ofAgent));
  },
);

/** What of RBAC a request needs: group, resource and verb. */
function rightOf(asked: string): string {
  const [method = "", url = ""] = asked.split(" ");
  const { pathname, searchParams } = new URL(url, "http://x");
  const [, group = "", resource = "", name] =
    /^\/apis?\/(?:([^/]+)\/)?v1\/(?:namespaces\/[^/]+\/)?([a-z]+)(?:\/(.+))?$/.exec(pathname) ?? [];
  const read = searchParams.get("watch") !== null ? "watch" : name === undefined ? "list" : "get";
  const verb = { PATCH: "patch", POST: "create" }[method] ?? read;
  return `${group} ${resource} ${verb}`;
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const rightsOf = ({ apiGroups, resources, verbs }: Rule): string[] =>
  apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${group} ${resource} ${verb}`)));

test("an agent has each right that its calls need, and no other, and the account that has them", async () => {
  await using server = await ScriptedApiServer.start();
  server.nodes.set("node-1", {
    metadata: { name: "node-1", uid: "u-1", resourceVersion: "1" },
    spec: { podCIDRs: ["10.80.1.0/24"] },
    status: { addresses: [{ type: "InternalIP", address: "192.0.2.1" }] },
  });
  const api = new ApiClient(serviceAccountAccess({ server: server.url }, {}, "nodes.registry.server"));
  await using registry = new KubernetesRegistry({ api, logger: createLogger("error", () => undefined) });
  await registry.register({ name: "node-1", uid: "", addresses: [], mac: "02:00:00:00:00:01" });
  await using _followed = registry.follow();
  for (const plural of ["services", "endpointslices"]) server.objects.set(plural, []);
  const logger = createLogger("error", () => undefined);
  const client = new ApiClient(serviceAccountAccess({ server: server.url }, {}, "services.server"));
  await using _services = new ClusterServices({ client, node: "node-1", logger });
  await using events = new KubernetesEvents({
    ...{ node: "node-1", logger },
    connect: () => new ApiClient(serviceAccountAccess({ server: server.url }, {}, "services.server")),
  });
  const of = { namespace: "x", name: "web", uid: "u" };
  events.tell({
    kind: "Service",
    of,
    reason: "AddressConflict",
    message: "203.0.113.9 port 80/tcp is left to another",
  });
  await eventually(() => server.asked.some((asked) => asked.startsWith("POST")), "the event");
  await eventually(() => server.watches === 4, "the registry and the services to be watched");
  const used = [...new Set(server.asked.map(rightOf))].sort();

  const objects = plainObjects();
  const { rules } = object(objects, "ClusterRole", "pipette-agent") as Manifest & { rules: Rule[] };
  expect(rules.flatMap(rightsOf).sort()).toEqual(used);
  const account = { kind: "ServiceAccount", name: "pipette-agent", namespace: "kube-system" };
  const binding = object(objects, "ClusterRoleBinding", "pipette-agent");
  expect(binding["subjects"]).toEqual([account]);
  expect(binding["roleRef"]).toMatchObject({ kind: "ClusterRole", name: "pipette-agent" });
  expect(object(objects, "ServiceAccount", account.name).metadata.namespace).toBe(account.namespace);
  for (const { file, name, pod } of daemonSets) {
    const isAgent = name.startsWith("pipette-agent");
    expect([pod.serviceAccountName, pod.automountServiceAccountToken], `${file} ${name}`).toEqual(
      isAgent ? [account.name, true] : [undefined, false],
    );
  }
  // What it says is shown at a real API server: test/kubernetes/agent-rights.test.ts.
  const policy = object(objects, "ValidatingAdmissionPolicy", "pipette-agent");
  expect(policy["spec"].matchConditions[0].expression).toBe(
    `request.userInfo.username == "system:serviceaccount:${account.namespace}:${account.name}"`,
  );
  expect(object(objects, "ValidatingAdmissionPolicyBinding", "pipette-agent")["spec"]).toEqual({
    policyName: "pipette-agent",
    validationActions: ["Deny"],
  });
});

describe("the controller", () => {
  const objects = plainObjects("pipette-controller.yaml");
  const { template } = object(objects, "Deployment", "pipette-controller")["spec"];
  const [container] = template.spec.containers;

  test("is started by a command that the program understands, and asked for its health where it serves", () => {
    // As the kubelet starts it.
    const started = container.command.map((word: string) => word.replace("$(POD_IP)", "192.0.2.1"));
    const { listen, namespace, advertise, "data-dir": dataDir } = optionsOf(started);
    expect([listen, namespace, advertise]).toEqual(["[::]:10349", "kube-system", "192.0.2.1"]);
    const podIp = { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } };
    expect(container.env).toContainEqual(podIp);
    expect(container.volumeMounts).toEqual([{ name: "data", mountPath: dataDir }]);
    for (const [probe, path] of Object.entries({ livenessProbe: "/livez", readinessProbe: "/readyz" }))
      expect(container[probe].httpGet).toEqual({ path, port: 10_349, scheme: "HTTPS" });
    const { ports, selector } = object(objects, "Service", "pipette-controller")["spec"];
    expect(ports).toEqual([{ name: "https", port: 443, targetPort: 10_349, protocol: "TCP" }]);
    expect(template.metadata.labels).toMatchObject(selector);
  });

  test("has no rights on its node, and at the API server those of its own account", () => {
    expect(container.securityContext).toEqual({
      ...{ runAsNonRoot: true, runAsUser: 65_532, runAsGroup: 65_532 },
      ...{ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
      seccompProfile: { type: "RuntimeDefault" },
      capabilities: { drop: ["ALL"] },
    });
    expect(template.spec.volumes).toEqual([{ name: "data", emptyDir: {} }]);
    expect(template.spec.serviceAccountName).toBe("pipette-controller");
    const accountOf = (name: string): string =>
      name.startsWith("pipette-agent") ? "pipette-agent" : "pipette-controller";
    for (const { kind, metadata, subjects } of objects.filter(({ kind }) => kind.endsWith("Binding")))
      expect([kind, subjects]).toEqual([
        kind,
        [{ kind: "ServiceAccount", name: accountOf(metadata.name), namespace: "kube-system" }],
      ]);
  });
});

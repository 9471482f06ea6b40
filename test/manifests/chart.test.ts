import { readFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { findHelm } from "../../build/helm.ts";
import { chart, kubeVersion, plainFiles, render, template } from "../../build/manifests.ts";
import { isObject } from "../../shared/schema/json-fields.ts";
import { version } from "../../shared/version.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { object, objectsIn } from "./manifest.ts";
import { schemaProblems } from "./schemas.ts";

const text = (name: string): string => readFileSync(join(chart, name), "utf8");
const values: Record<string, unknown> = parse(text("values.yaml"), { version: "1.1" });

test("the chart has the version of the program", () => {
  expect(parse(text("Chart.yaml"))).toMatchObject({ version, appVersion: version });
});

/** Every map of the schema that has keys of its own, by its path. */
function* mapsIn(schema: unknown, at = ""): Generator<readonly [string, Record<string, unknown>]> {
  if (!isObject(schema)) return;
  if (isObject(schema["properties"])) yield [at, schema];
  for (const [key, value] of Object.entries(schema)) yield* mapsIn(value, `${at}/${key}`);
}

test("its schema is closed, and knows every value that there is, and no other", () => {
  const schema = JSON.parse(text("values.schema.json"));
  for (const [at, map] of mapsIn(schema)) expect([at, map["additionalProperties"]]).toEqual([at, false]);
  const known = (given: unknown, of: unknown): unknown => {
    const $ref = isObject(of) ? of["$ref"] : undefined;
    const resolved = typeof $ref === "string" ? schema.definitions[$ref.replace("#/definitions/", "")] : of;
    if (!isObject(given) || !isObject(resolved) || !isObject(resolved["properties"])) return true;
    const { properties } = resolved;
    return Object.fromEntries(Object.entries(given).map(([key, value]) => [key, known(value, properties[key])]));
  };
  const keys = (of: Record<string, unknown>): readonly string[] => Object.keys(of).sort();
  expect(keys(values)).toEqual(keys(schema.properties));
  for (const part of [
    "linux",
    "windows",
    "openvswitch",
    "probes",
    "metrics",
    "rbac",
    "serviceAccount",
    "apiServer",
    "controller",
  ])
    expect(keys(values[part] as Record<string, unknown>), part).toEqual(keys(schema.properties[part].properties));
  expect(known(values, schema)).toBeTruthy();
});

describeWith("the chart", ["linux", "helm"], () => {
  const helm = findHelm() ?? "";
  const objectsOf = async (...settings: readonly string[]) =>
    objectsIn(
      await template(
        helm,
        settings.flatMap((setting) => ["--set-json", setting]),
      ),
    );
  const podOf = async (name: string, ...settings: readonly string[]) =>
    object(await objectsOf(...settings), "DaemonSet", name)["spec"].template.spec;

  test("viewers may what a bundle asks for: what happened to agents' pods, their logs, what is installed", async () => {
    const { rules } = object(await objectsOf("metrics.enabled=true"), "Role", "pipette-viewer") as unknown as {
      readonly rules: readonly object[];
    };
    expect(rules).toContainEqual({ apiGroups: [""], resources: ["events"], verbs: ["list"] });
    expect(rules).toContainEqual({ apiGroups: [""], resources: ["pods/log"], verbs: ["get"] });
    expect(rules).toContainEqual({ apiGroups: ["apps"], resources: ["daemonsets", "deployments"], verbs: ["list"] });
    const names = ["pipette-agent", "pipette-agent-windows"];
    expect(rules).toContainEqual({ apiGroups: [""], resources: ["configmaps"], resourceNames: names, verbs: ["get"] });
  });

  test.each(plainFiles)("is what $path was made of", async (file) => {
    expect(await render(file, helm), "npm run manifests").toBe(readFileSync(file.path, "utf8"));
  });

  test("has nothing that helm finds fault with", async () => {
    expect(
      (await execa(helm, ["lint", "--strict", "--kube-version", kubeVersion, chart], { all: true })).all,
    ).toContain("0 chart(s) failed");
  });

  test.each([
    ["a misspelt value", "linux.tolerationz=[]", "tolerationz"],
    ["a misspelt part", "lunix={}", "lunix"],
    ["a data path that there is not", 'dataPath="hns"', "dataPath"],
    ["a port that there is not", "probes.port=70000", "port"],
    ["a text for a number", 'linux.terminationGracePeriodSeconds="20"', "terminationGracePeriodSeconds"],
    ["a digest that is none", 'image.digest="sha256:abc"', "digest"],
  ])("refuses %s", async (_, setting, named) => {
    await expect(objectsOf(setting)).rejects.toThrow(named);
  });

  test("opens a port for metrics only where that is asked for, and gives the rights for it", async () => {
    const configOf = async (...settings: readonly string[]) =>
      parse(object(await objectsOf(...settings), "ConfigMap", "pipette-agent")["data"]?.["agent.yaml"] ?? "");
    expect(await configOf()).not.toHaveProperty("metrics");
    const asked = ["metrics.enabled=true", "metrics.port=9999", 'linux.config.nodes={"registry":{"type":"static"}}'];
    const config = await configOf(...asked);
    expect(config.metrics).toEqual({ listen: "[::]:9999" });
    const objects = await objectsOf(...asked);
    const rules = (name: string) => object(objects, "ClusterRole", name)["rules"];
    expect(rules("pipette-agent-metrics").map(({ resources }: { resources: string[] }) => resources)).toEqual([
      ["tokenreviews"],
      ["subjectaccessreviews"],
    ]);
    expect(rules("pipette-metrics-reader")).toEqual([{ nonResourceURLs: ["/metrics"], verbs: ["get"] }]);
    // It asks the API server by its account, whatever else it asks.
    expect((await podOf("pipette-agent", ...asked)).serviceAccountName).toBe("pipette-agent");
  });

  test("gives agents the secret of IPsec out of a Secret, and the way to the node's strongSwan", async () => {
    const asked = ['dataPath="ovs"', 'ipsec.secret="pipette-ipsec"', 'linux.config={"ovs":{"encryption":"ipsec"}}'];
    const { env } = (await podOf("pipette-agent", ...asked)).containers[0];
    expect(env).toContainEqual({
      name: "PIPETTE_IPSEC_PSK",
      valueFrom: { secretKeyRef: { name: "pipette-ipsec", key: "psk" } },
    });
    const text = object(await objectsOf(...asked), "ConfigMap", "pipette-agent")["data"]?.["agent.yaml"] ?? "";
    expect(parse(text).ovs).toEqual({ encryption: "ipsec", ipsec: { charon: "/run/openvswitch/charon.enfy" } });
    expect(JSON.stringify(await objectsOf('dataPath="ovs"'))).not.toContain("IPSEC");
  });

  test("has a controller that is found as others are, and answers kubectl, only where that is asked for", async () => {
    const named = async (...settings: readonly string[]) =>
      (await objectsOf("controller.enabled=true", ...settings)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    expect((await objectsOf()).filter(({ metadata }) => metadata.name.includes("controller"))).toEqual([]);
    const plain = await named();
    expect(plain).toContain("Deployment pipette-controller");
    const added = async (setting: string) => (await named(setting)).filter((name) => !plain.includes(name));
    expect(await added("controller.asAntrea=true")).toEqual(["Service antrea"]);
    expect(await added("controller.aggregated=true")).toEqual([
      "APIService v1beta2.controlplane.antrea.io",
      "APIService v1.controlplane.pipette.io",
    ]);
    const objects = await objectsOf(
      "controller.enabled=true",
      "controller.asAntrea=true",
      'controller.address="0.0.0.0"',
    );
    const { command } = object(objects, "Deployment", "pipette-controller")["spec"].template.spec.containers[0];
    expect(command).toEqual(expect.arrayContaining(["--as-antrea", "0.0.0.0:10349"]));
    expect(JSON.stringify(object(objects, "Role", "pipette-controller"))).toContain("antrea-ca");
  });

  test("serves the page for a team only where that is asked for, with the rights that it needs then, and no others", async () => {
    const on = ["controller.enabled=true", "metrics.enabled=true"];
    const named = async (...more: readonly string[]) =>
      (await objectsOf(...on, ...more)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    const before = await named();
    expect(before.filter((name) => name.endsWith("pipette-page"))).toEqual([]);
    const page = ["controller.page.enabled=true", 'controller.page.hosts=["net.example:8443"]'];
    const added = (await named(...page)).filter((name) => !before.includes(name));
    expect(added.toSorted()).toEqual(
      ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Service"].map((kind) => `${kind} pipette-page`),
    );
    const objects = await objectsOf(
      ...on,
      ...page,
      'controller.page.proxies=["10.0.0.0/8"]',
      "controller.page.ingress.enabled=true",
    );
    expect(object(objects, "Role", "pipette-page")["rules"]).toEqual([
      { apiGroups: [""], resources: ["pods/proxy"], verbs: ["get"] },
      { apiGroups: [""], resources: ["serviceaccounts/token"], resourceNames: ["pipette-operator"], verbs: ["create"] },
    ]);
    expect(object(objects, "ClusterRole", "pipette-page")["rules"]).toEqual([
      { apiGroups: [""], resources: ["nodes"], verbs: ["list"] },
    ]);
    const { command, ports } = object(objects, "Deployment", "pipette-controller")["spec"].template.spec.containers[0];
    const words = ["--page", "[::]:10353", "--page-host", "net.example:8443", "--page-proxy", "10.0.0.0/8"];
    expect(command.join(" ")).toContain(words.join(" "));
    expect(ports).toContainEqual({ name: "page", containerPort: 10_353, hostPort: 10_353, protocol: "TCP" });
    expect(object(objects, "Ingress", "pipette-page")["spec"].rules[0].host).toBe("net.example");
    await expect(objectsOf("controller.enabled=true", ...page)).rejects.toThrow("wants metrics.enabled");
    await expect(
      objectsOf(...on, "controller.page.enabled=true", "controller.page.ingress.enabled=true"),
    ).rejects.toThrow("wants a name");
    await expect(objectsOf(...on, 'controller.page.hosts=["https://x"]')).rejects.toThrow("hosts");
  });

  test("renders agent.yaml from what its values say, and mounts what that names", async () => {
    const config = {
      dataDir: "/data/pipette",
      socket: "/run/pt/cni.sock",
      cni: { confDir: "/etc/other/net.d" },
      logLevel: "debug",
    };
    const objects = await objectsOf(`linux.config=${JSON.stringify(config)}`, 'linux.cniBinDir="/usr/lib/cni"');
    const { data } = object(objects, "ConfigMap", "pipette-agent");
    expect(parse(data?.["agent.yaml"] ?? "")).toEqual({
      ...config,
      dataPath: "bridge",
      networks: [{ name: "pods", bridge: "pipette0" }],
      nodes: { registry: { type: "kubernetes" } },
    });
    const { volumes, containers, initContainers } = object(objects, "DaemonSet", "pipette-agent")["spec"].template.spec;
    const places = volumes.flatMap(({ hostPath }: { hostPath?: { path: string } }) => hostPath?.path ?? []);
    expect(places).toEqual(expect.arrayContaining(["/data/pipette", "/run/pt", "/etc/other/net.d", "/usr/lib/cni"]));
    expect(containers[0].volumeMounts).toContainEqual({ name: "data", mountPath: "/data/pipette" });
    expect(initContainers[0].command).toContain("/host/usr/lib/cni");
  });

  test("writes below /usr only where it may", async () => {
    const pods = ["pipette-agent", "pipette-uninstall"].map(
      (name) =>
        (...settings: readonly string[]) =>
          podOf(name, ...(name === "pipette-agent" ? [] : ["uninstall=true"]), ...settings),
    );
    for (const pod of pods) {
      expect(JSON.stringify(await pod())).toContain("/usr/libexec/pipette");
      expect(JSON.stringify(await pod("linux.libexec=false"))).not.toContain("libexec");
    }
  });

  test("asks for rights and a token only where an agent asks the API server", async () => {
    const own = 'linux.config={"nodes":{"registry":{"type":"static","file":"/etc/pipette/nodes.yaml"}}}';
    const objects = await objectsOf(own, "windows.enabled=false");
    expect(new Set(objects.map(({ kind }) => kind))).toEqual(new Set(["ConfigMap", "DaemonSet"]));
    expect(object(objects, "DaemonSet", "pipette-agent")["spec"].template.spec).toMatchObject({
      automountServiceAccountToken: false,
    });
    const asking = async (services: object): Promise<boolean> => {
      const nodes = { registry: { type: "static", file: "/etc/pipette/nodes.yaml" } };
      const found = await objectsOf(`linux.config=${JSON.stringify({ nodes, services })}`, "windows.enabled=false");
      return found.some(({ kind }) => kind === "ClusterRole");
    };
    expect([await asking({}), await asking({ from: "file", file: "/s" })]).toEqual([true, false]);
    const kinds = (await objectsOf("rbac.admissionPolicy=false")).map(({ kind }) => kind);
    expect(kinds).toContain("ClusterRole");
    expect(kinds.some((kind) => kind.startsWith("Validating"))).toBe(false);
  });

  test("rolls the agents when their configuration changes, and only then, where they do not look themselves", async () => {
    const marks = async (...settings: readonly string[]) => {
      const objects = await objectsOf(...settings);
      const marksOf = (name: string) =>
        object(objects, "DaemonSet", name)["spec"].template.metadata.annotations["checksum/config"];
      return [marksOf("pipette-agent"), marksOf("pipette-agent-windows")];
    };
    expect(await marks()).toEqual([undefined, undefined]);
    const still = "followConfig=false";
    const [linux, windows] = await marks(still);
    expect(linux).toMatch(/^[0-9a-f]{64}$/);
    expect(await marks(still, "linux.hostPID=true")).toEqual([linux, windows]);
    const [changed, same] = await marks(still, 'linux.config={"logLevel":"debug"}');
    expect([changed === linux, same]).toEqual([false, windows]);
    const { containers } = await podOf("pipette-agent", still);
    expect(containers[0].command).not.toContain("--follow-config");
  });

  test("has the agents find the API server where it is said to be, before anything balances its service", async () => {
    const { containers } = await podOf("pipette-agent", 'apiServer={"host":"192.0.2.9","port":6443}');
    expect(containers[0].env).toEqual(
      expect.arrayContaining([
        { name: "KUBERNETES_SERVICE_HOST", value: "192.0.2.9" },
        { name: "KUBERNETES_SERVICE_PORT", value: "6443" },
      ]),
    );
  });

  test("in place of the agents removes them, with what they work with still there", async () => {
    const names = (await objectsOf("uninstall=true", 'dataPath="ovs"')).map(({ kind, metadata }) => [
      kind,
      metadata.name,
    ]);
    expect(
      names
        .filter(([kind]) => kind === "DaemonSet")
        .map(([, name]) => name)
        .sort(),
    ).toEqual(["pipette-openvswitch", "pipette-uninstall", "pipette-uninstall-windows"]);
    expect(names).toContainEqual(["ConfigMap", "pipette-agent"]);
  });
});

/** Every value that turns something on, or adds something. */
const everything = {
  image: { repository: "registry.example/pipette", digest: `sha256:${"a".repeat(64)}` },
  imagePullSecrets: [{ name: "pull" }],
  dataPath: "ovs",
  followConfig: false,
  apiServer: { host: "192.0.2.9", port: 6443 },
  serviceAccount: { name: "other", annotations: { a: "b" } },
  controller: {
    enabled: true,
    replicas: 2,
    aggregated: true,
    asAntrea: true,
    podLabels: { team: "net" },
    extraArgs: ["--name", "x"],
  },
  ...Object.fromEntries(
    ["linux", "windows"].map((part) => [
      part,
      {
        nodeSelector: { pool: "one" },
        affinity: { nodeAffinity: {} },
        podAnnotations: { a: "b" },
        podLabels: { team: "net" },
        extraEnv: [{ name: "A", value: "b" }],
        extraArgs: ["--log-file", "x.log"],
        extraVolumes: [{ name: "extra", emptyDir: {} }],
        extraVolumeMounts: [{ name: "extra", mountPath: "/extra" }],
        resources: { requests: { cpu: "1" }, limits: { memory: "1Gi" } },
      },
    ]),
  ),
};

const sets: readonly (readonly [string, object])[] = [
  ["as they are", {}],
  ["for Linux only", { windows: { enabled: false } }],
  ["for Windows only", { linux: { enabled: false } }],
  ["for Open vSwitch in user space", { dataPath: "ovs", linux: { config: { ovs: { datapath: "netdev" } } } }],
  ["for a removal", { uninstall: true, dataPath: "ovs" }],
  ["with everything", everything],
];

describeWith("what Kubernetes' schemas say of the chart's objects", ["linux", "helm", "kubernetes-validate"], () => {
  // The oldest that has all kinds, one in the middle, the newest whose schema the tests have.
  const versions = ["1.30", "1.34", "1.37"];

  test("with whatever values nothing is wrong, strictly, from the oldest to the newest", async () => {
    using scratch = scratchDir();
    const rendered: string[] = [];
    for (const [name, given] of sets) {
      const file = join(scratch.path, `${name}.json`);
      await Bun.write(file, JSON.stringify(given));
      rendered.push(await template(findHelm() ?? "", ["--values", file]));
    }
    for (const each of versions) expect(await schemaProblems(rendered.join(""), each), each).toEqual([]);
  });

  test("before the admission policy nothing is wrong either, without it", async () => {
    const objects = await template(findHelm() ?? "", ["--set", "rbac.admissionPolicy=false"]);
    expect(await schemaProblems(objects, "1.26")).toEqual([]);
  });

  test("what is wrong is found", async () => {
    const objects = (await template(findHelm() ?? "", [])).replace("hostNetwork: true", "hostNetwrok: true");
    expect(await schemaProblems(objects, "1.37")).toEqual([expect.stringContaining("hostNetwrok")]);
  });
});

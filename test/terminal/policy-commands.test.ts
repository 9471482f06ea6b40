import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { everything, readPod } from "../../shared/policy/mod.ts";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { ScriptedApiServer, type ScriptedObject } from "../fakes/kubernetes/scripted-api-server.ts";
import { block, egress, ingress, ns, pod, ports, toA } from "../fakes/policy-world.ts";
import { ServedPolicies } from "../policies/served-policies.ts";
import { eventually } from "../support/eventually.ts";
import { scratchDir } from "../support/scratch-dir.ts";

const names = ["x", "y"].flatMap((namespace) => ["a", "b", "c"].map((name) => ({ namespace, name })));

const podObject = (namespace: string, name: string, i: number, more: object = {}): ScriptedObject => ({
  metadata: { namespace, name, labels: { pod: name } },
  spec: { nodeName: `n-${name}`, containers: [{ ports: [{ name: "web", containerPort: 8080 }] }], ...more },
  status: { phase: "Running", podIPs: [{ ip: `10.0.0.${i + 1}` }] },
});

const policy = (namespace: string, name: string, spec: object, generation = 1): ScriptedObject => ({
  metadata: { namespace, name, uid: `uid-${name}`, generation },
  spec,
});

const slice = (ready: readonly string[]): ScriptedObject => ({
  metadata: { namespace: "x", name: "web-1", labels: { "kubernetes.io/service-name": "web" } },
  ports: [{ name: "http", protocol: "TCP", port: 8080 }],
  endpoints: ready.map((name) => ({
    addresses: [`10.0.0.${names.findIndex((each) => each.namespace === "x" && each.name === name) + 1}`],
    conditions: { ready: true },
    targetRef: { kind: "Pod", name },
  })),
});

describe("pipette policy", () => {
  const stack = new AsyncDisposableStack();
  let api: ScriptedApiServer;
  let directory: string;

  beforeAll(async () => {
    compileExecutables();
    api = stack.use(await ScriptedApiServer.start());
    directory = stack.use(scratchDir()).path;
    await Bun.write(
      join(directory, "config"),
      JSON.stringify({
        "current-context": "here",
        contexts: [{ name: "here", context: { cluster: "c", user: "u", namespace: "x" } }],
        users: [{ name: "u", user: { token: "admin" } }],
        clusters: [{ name: "c", cluster: { server: api.url } }],
      }),
    );
    api.put("n-a", [], "192.168.0.1");
    const objects = (plural: string, list: readonly ScriptedObject[]) => api.objects.set(plural, list);
    objects("pods", [
      ...names.map(({ namespace, name }, i) => podObject(namespace, name, i)),
      podObject("y", "host", 99, { hostNetwork: true }),
    ]);
    objects(
      "namespaces",
      ["x", "y"].map((name) => ({ metadata: { name, labels: { ns: name } } })),
    );
    objects("networkpolicies", [
      policy("x", "closed", toA(ingress()), 3),
      policy("x", "web", toA(ingress({ from: [ns("y")], ...ports({ port: "web" }) }))),
      policy("y", "out", { ...egress({ to: [block("10.0.0.0/30")] }), podSelector: { matchLabels: { pod: "c" } } }),
    ]);
    objects("services", [
      {
        metadata: { namespace: "x", name: "web" },
        spec: { clusterIPs: ["10.96.0.7"], ports: [{ name: "http", port: 80 }] },
      },
    ]);
    objects("endpointslices", [slice(["a", "b"])]);
  });
  afterAll(() => stack.disposeAsync());

  async function run(args: readonly string[], input = "") {
    const child = Bun.spawn([join(executables, "pipette"), "policy", ...args], {
      env: { KUBECONFIG: join(directory, "config") },
      stdin: new TextEncoder().encode(input),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { status: await child.exited, stdout, stderr };
  }

  describe("why", () => {
    test.each([
      [["a", "y/a", "--port", "80"], 0, "x/a may reach y/a at TCP 80: no policy isolates either of them for it"],
      [["y/a", "a", "--port", "web"], 0, "y/a may reach x/a at TCP 8080: x/web ingress[0] allows what x/a receives"],
      [
        ["b", "a", "--port", "8080"],
        1,
        "x/b may not reach x/a at TCP 8080: x/closed and x/web isolate x/a in what it receives, and no rule allows this",
      ],
      [["y/a", "a"], 0, "y/a may reach x/a at TCP 8080, and at nothing else"],
      [
        ["y/c", "10.0.0.200", "--port", "53", "--protocol", "udp"],
        1,
        "y/c may not reach 10.0.0.200 at UDP 53: y/out isolates y/c in what it sends, and no rule allows this",
      ],
      [
        ["a", "192.168.0.1", "--port", "22"],
        0,
        "x/a may reach node n-a at TCP 22: no policy isolates x/a in what it sends",
      ],
      [["node/n-a", "a", "--port", "1"], 0, "node n-a may reach x/a at TCP 1: the node of x/a always reaches it"],
      [
        ["10.0.0.4", "10.0.0.1", "--port", "8080"],
        0,
        "y/a may reach x/a at TCP 8080: x/web ingress[0] allows what x/a receives",
      ],
      [["b", "service/web", "--port", "80"], 0, "x/b may reach 1 of 2 endpoints of service x/web at TCP 8080"],
      [["y/a", "service/x/web", "--port", "http"], 0, "y/a may reach service x/web at TCP 8080"],
      [["b", "10.96.0.7"], 0, "x/b may reach 1 of 2 endpoints of service x/web at TCP 8080"],
      [
        ["y/host", "a", "--port", "80"],
        1,
        "y/host may not reach x/a at TCP 80: x/closed and x/web isolate x/a in what it receives, and no rule allows this",
      ],
    ])("%j", async (args, status, sentence) => {
      const { stdout, ...rest } = await run(["why", ...args]);
      expect({ ...rest, sentence: stdout.split("\n")[0] }).toEqual({
        status,
        stderr: "",
        sentence,
      });
    });

    test.each([
      [["nobody", "a"], 3, 'Cannot say why: there is no pod "nobody" in namespace "x"\n'],
      [["a", "service/none"], 3, 'Cannot say why: there is no service "none" in namespace "x"\n'],
      [["a", "service/web", "--port", "81"], 3, "Cannot say why: service x/web has no such port, but TCP 80\n"],
      [["a", "b", "--port", "dns"], 3, 'Cannot say why: x/b has no TCP port of the name "dns"\n'],
      [["service/web", "a"], 2, "Cannot say why: service x/web sends nothing, wanted a pod\n"],
      [
        ["A_b", "a"],
        2,
        'Cannot say why: "A_b" is no end of a connection, wanted namespace/pod, pod, an address, node/NAME\n',
      ],
    ])("%j is refused", async (args, status, stderr) => {
      expect(await run(["why", ...args])).toEqual({ status, stdout: "", stderr });
    });

    test("says what the nodes have in force, as far as the controller tells, and whether it comes to the same", async () => {
      const unasked = await run(["why", "b", "a", "--port", "8080"]);
      expect(unasked.stdout).toContain(
        "x/closed on node n-a: not known: Cannot ask the controller about NetworkPolicy",
      );
      const api2 = "/apis/controlplane.antrea.io/v1beta2";
      const nodes = [{ nodeName: "n-a", generation: 2, realizationFailure: false, message: "" }];
      api.answers.set(`${api2}/networkpolicies/uid-closed/status`, { nodes });
      api.answers.set(`${api2}/networkpolicies/uid-web/status`, {
        nodes: [{ nodeName: "n-a", generation: 1, realizationFailure: false, message: "" }],
      });
      api.answers.set(`${api2}/networkpolicyevaluation`, { response: { rule: { action: "Drop" } } });
      expect((await run(["why", "-n", "x", "b", "a", "--port", "8080"])).stdout).toMatch(
        /\nin force\n {2}x\/closed on node n-a: generation 2, while the API server has 3\n {2}x\/web on node n-a: enforced as it is now\n {2}the controller comes to the same\n$/,
      );
      const { stdout } = await run(["why", "b", "a", "--port", "8080", "--json"]);
      expect(JSON.parse(stdout)).toMatchObject({
        allowed: "none",
        cases: [
          {
            ports: "TCP 8080",
            ingress: { t: "denied", otherPeer: [{ policy: "x/web", place: "ingress[0], ports[0]" }] },
          },
        ],
        inForce: { controllerAgrees: true },
      });
      api.answers.clear();
    });
  });

  describe("what-if", () => {
    const yaml = (spec: object, name = "more", namespace?: string): string =>
      JSON.stringify({
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
        spec,
      });

    test("tells together what changes together, and leaves other kinds aside", async () => {
      const deny = { podSelector: {}, policyTypes: ["Ingress"] };
      const two = `# all of them\n${yaml(deny)}\n---\n---\nkind: Deployment\napiVersion: apps/v1\nmetadata: {name: web}\n`;
      expect(await run(["what-if", "-f", "-"], two)).toEqual({
        status: 1,
        stderr: 'left aside, as no NetworkPolicy: Deployment "web"\n',
        stdout: `x/more: new

0 pairs of pods would be opened, and 12 closed

CHANGE  FROM                                            TO           PORTS       PAIRS
closed  all pods and outside (0.0.0.0-255.255.255.255)  x/b and x/c  everything  12
`,
      });
    });

    test("says so where nothing changes, or what there is is deleted", async () => {
      expect(await run(["what-if", "-f", "-", "-n", "x"], yaml({ ...toA(ingress()) }, "closed"))).toMatchObject({
        status: 0,
        stdout: expect.stringMatching(/^x\/closed: as it is\n\nNothing would change/),
      });
      const { status, stdout } = await run(["what-if", "--delete", "y/out", "--json"]);
      expect({ status, ...JSON.parse(stdout) }).toMatchObject({
        status: 1,
        policies: [{ policy: "y/out", becomes: "deleted" }],
        opened: expect.any(Number),
        closed: 0,
      });
    });

    test.each([
      [
        ["--delete", "nothing"],
        "",
        3,
        'Cannot say what would change: there is no NetworkPolicy "x/nothing" to be deleted\n',
      ],
      [[], "", 2, "Cannot say what would change: nothing is to be changed, wanted -f FILE or --delete NAME\n"],
      [["-f", "-"], "{", 2, expect.stringMatching(/^Cannot read the policies: "-" is no YAML: .*\n$/)],
      [
        ["-f", "-"],
        yaml(ingress({ from: [pod("a")], ...ports({ port: 99_999 }) })),
        2,
        'Cannot read the policies: NetworkPolicy "x/more" in "-" is not valid: spec.ingress[0].ports[0]\n',
      ],
    ])("%j is refused", async (args, input, status, stderr) => {
      expect(await run(["what-if", ...args], input)).toEqual({ status, stdout: "", stderr });
    });
  });

  describe("list and show", () => {
    const status = (uid: string): string => `/apis/controlplane.antrea.io/v1beta2/networkpolicies/${uid}/status`;
    const report = (nodeName: string, generation: number, message = "") => ({
      nodeName,
      generation,
      realizationFailure: message !== "",
      message,
    });

    test("tell where policies are enforced, where somebody can be asked", async () => {
      const unasked = await run(["list"]);
      expect(unasked).toMatchObject({ status: 0, stderr: "" });
      expect(unasked.stdout).toMatch(
        /^POLICY .*\nx\/closed +pods with pod=a +1 +ingress +\?\n(.*\n){2}enforced where is not known: /,
      );
      api.answers.set(status("uid-closed"), { nodes: [report("n-a", 3)] });
      api.answers.set(status("uid-web"), { nodes: [report("n-a", 1, "no room")] });
      api.answers.set(status("uid-out"), { nodes: [] });
      expect(await run(["list", "-n", "x"])).toEqual({
        status: 1,
        stderr: "",
        stdout: `POLICY    SELECTS          PODS  ISOLATES  ENFORCED
x/closed  pods with pod=a  1     ingress   1/1
x/web     pods with pod=a  1     ingress   0/1
x/web on node n-a: not enforced: no room
`,
      });
      expect(await run(["show", "web"])).toEqual({
        status: 0,
        stderr: "",
        stdout: `NetworkPolicy x/web, generation 1
applies to pods with pod=a of its namespace: 1 pod on 1 node: x/a
isolates what they receive, but for:
  ingress[0]: from all pods of namespaces with ns=y, at TCP "web"
    ingress[0], from[0]: 3 pods: y/a, y/b and y/c
    ingress[0], ports[0]: 8080 of 1 pod
does not isolate what they send
enforced on 0 of 1 node
  node n-a: not enforced: no room
`,
      });
      const { stdout } = await run(["list", "--json"]);
      expect(JSON.parse(stdout).policies).toMatchObject([
        { policy: "x/closed", enforced: { on: 1, of: 1 } },
        {},
        { policy: "y/out" },
      ]);
      api.answers.clear();
    });

    test("ask the controller itself, where they may, by its Service and the authority that it has published", async () => {
      await using served = await ServedPolicies.start();
      const closed = { namespace: "x", name: "closed", uid: "uid-closed", generation: 3, problems: [] };
      const metadata = { namespace: "x", name: "a", uid: "uid-a" };
      const onNode = readPod({ metadata, spec: { nodeName: "n-a" }, status: { podIPs: [{ ip: "10.0.0.1" }] } });
      served.computation.putPod(onNode ?? expect.fail());
      served.computation.putPolicy({ ...closed, pods: everything, ingress: [] });
      served.changed();
      await eventually(() => served.state?.reports.has("uid-closed") === true, "the policy");
      served.state?.reports.enforced("uid-closed", report("n-a", 3));
      const meta = {
        name: "c",
        namespace: "kube-system",
        labels: { "kubernetes.io/service-name": "pipette-controller" },
      };
      const slices = api.objects.get("endpointslices") ?? [];
      const endpoints = [{ addresses: ["127.0.0.1"], conditions: { ready: true } }];
      api.objects.set("endpointslices", [...slices, { metadata: meta, ports: [{ port: served.port }], endpoints }]);
      const configMap = "/api/v1/namespaces/kube-system/configmaps/pipette-controller-ca";
      api.answers.set(configMap, { data: { "ca.crt": served.ca } });
      const { stdout } = await run(["show", "closed", "--ask-controller"]);
      expect(stdout).toContain("\nenforced on 1 of 1 node\n");
      expect((await run(["show", "closed"])).stdout).toContain("--ask-controller asks it itself");
      api.answers.clear();
      api.objects.set("endpointslices", slices);
    });

    test("know no others", async () => {
      expect(await run(["show", "y/web"])).toEqual({
        status: 3,
        stdout: "",
        stderr: 'Cannot show the network policy: there is no NetworkPolicy "web" in namespace "y"\n',
      });
    });
  });

  test("an API server that refuses is no answer", async () => {
    api.refusal = { status: 403, message: "pods is forbidden" };
    expect(await run(["why", "a", "b"])).toEqual({
      status: 2,
      stdout: "",
      stderr:
        'Cannot list pods in namespace "x": the API server answers 403: pods is forbidden, wanted the right to list pods in namespace "x"\n',
    });
    api.refusal = undefined;
  });
});

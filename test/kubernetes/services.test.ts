import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AgentConfig, ServicesConfig } from "../../agent/config/agent-config.ts";
import type { ServicePort } from "../../agent/datapath/services.ts";
import { type NodeServices, openServices } from "../../agent/services/mod.ts";
import { ApiClient, KubernetesEvents, mapIn, mapsIn, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { formatIp } from "../../shared/net/ip.ts";
import { RecordedMeter } from "../fakes/recorded-meter.ts";
import { ServiceProxyInMemory } from "../fakes/service-proxy.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";
import { addNode, shipped } from "./registry-node.ts";
import { agentToken } from "./service-account.ts";

const needs = ["kube-apiserver", "kube-controller-manager", "etcd", "openssl"] as const;

describeWith("services of a real API server, with endpoints from its controllers", needs, () => {
  const stack = new AsyncDisposableStack();
  const proxy = new ServiceProxyInMemory();
  const meter = new RecordedMeter();
  let server: ApiServer;
  let services: NodeServices;

  beforeAll(async () => {
    server = stack.use(
      await ApiServer.start({ podCidrs: "10.80.0.0/16,fd80::/56", controllers: ["endpointslice-controller"] }),
    );
    await shipped(server);
    for (const [i, name] of ["here", "there"].entries()) {
      await addNode(server, name, `192.0.2.${i + 1}`);
      const zone = { "topology.kubernetes.io/zone": `z${i}` };
      await server.ask("PATCH", `/api/v1/nodes/${name}`, { metadata: { labels: zone } });
    }
    await server.create("/api/v1/namespaces", { metadata: { name: "x" } });
    await server
      .create("/api/v1/namespaces/x/serviceaccounts", { metadata: { name: "default" } })
      .catch(() => undefined);
    const scratch = stack.use(scratchDir());
    const token = join(scratch.path, "token");
    // With the rights that the manifests give an agent.
    writeFileSync(token, await agentToken(server, "here"), { mode: 0o600 });
    const access = { server: server.url, ca: server.ca, token };
    const section: ServicesConfig = { from: "cluster", ...access, cidrs: [], proxyAll: true, nodePortAddresses: [] };
    const config = { services: section, networks: [], nodes: { name: "here" } } as unknown as AgentConfig;
    const logger = createLogger("error", () => undefined);
    const connect = () => new ApiClient(serviceAccountAccess(access, {}, "services.server"));
    const events = stack.use(new KubernetesEvents({ node: "here", connect, logger }));
    services = stack.use(openServices({ ...config, services: section }, proxy, logger, { events, meter }));
    await services.begin();
  });
  afterAll(() => stack.disposeAsync());

  const pods = "/api/v1/namespaces/x/pods";
  const selector = { app: "web" };

  async function addPod(name: string, node: string, ips: readonly string[]): Promise<void> {
    const containers = [{ name: "a", image: "none", ports: [{ name: "http", containerPort: 8080 }] }];
    await server.create(pods, { metadata: { name, labels: selector }, spec: { nodeName: node, containers } });
    await setReady(name, true, ips);
  }

  async function setReady(name: string, isReady: boolean, ips?: readonly string[]): Promise<void> {
    const ready = isReady ? "True" : "False";
    const lastTransitionTime = new Date().toISOString();
    const addresses = ips === undefined ? {} : { podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) };
    const status = {
      phase: "Running",
      conditions: [{ type: "Ready", status: ready, lastTransitionTime }],
      ...addresses,
    };
    await server.ask("PATCH", `${pods}/${name}/status`, { status });
  }

  const service = (name: string, spec: object) =>
    server.create("/api/v1/namespaces/x/services", { metadata: { name }, spec: { selector, ...spec } });
  const port = { name: "http", port: 80, targetPort: "http" };

  const text = (of: ServicePort["cluster"]): string =>
    of.map(({ ip, port: at, isLocal }) => `${formatIp(ip)} ${at}${isLocal ? " here" : ""}`).join(", ");
  const inForce = (key: string, as: (of: ServicePort) => string, wanted: string) =>
    eventually(() => {
      const found = proxy.inForce.get(key);
      return found !== undefined && as(found) === wanted;
    }, `${key} as ${wanted}`).catch(() => expect(as(proxy.inForce.get(key)!)).toBe(wanted));

  test("come with their pods, and follow them", async () => {
    // Kubernetes tells in whole seconds when something changed, and what changed before the agent began is not measured.
    await Bun.sleep(1_000);
    await addPod("one", "here", ["10.80.0.5"]);
    await addPod("two", "there", ["10.80.1.5"]);
    await service("web", { ports: [port] });
    await service("headless", { ports: [port], clusterIP: "None" });
    await inForce("x/web:http", ({ cluster }) => text(cluster), "10.80.0.5 8080 here, 10.80.1.5 8080");
    // The API server's own, whose slice has no controller.
    await inForce("default/kubernetes:https", ({ port: at }) => String(at), "443");
    expect([...proxy.inForce.keys()].filter((key) => key.startsWith("x/"))).toEqual(["x/web:http"]);
    await setReady("one", false);
    await inForce("x/web:http", ({ cluster }) => text(cluster), "10.80.1.5 8080");
    await setReady("one", true);
    await inForce("x/web:http", ({ cluster }) => text(cluster), "10.80.0.5 8080 here, 10.80.1.5 8080");
    expect(services.summary).toMatch(/^services: \d+ ports in force$/);
    // From the pod's readiness on, as the controller of the slices writes it.
    expect(meter.told).toContain("kubeproxy_network_programming_duration_seconds");
    expect(services.degraded).toEqual([]);
  });

  test("of load balancers keep to local endpoints, and say to those who ask whether there are any", async () => {
    const local = { type: "LoadBalancer", externalTrafficPolicy: "Local", sessionAffinity: "ClientIP" };
    const ranges = { loadBalancerSourceRanges: ["198.51.100.0/24"], externalIPs: ["203.0.113.1"] };
    await service("lb", { ports: [port], ...local, ...ranges });
    await server.ask("PATCH", "/api/v1/namespaces/x/services/lb/status", {
      status: { loadBalancer: { ingress: [{ ip: "203.0.113.9" }, { ip: "203.0.113.10", ipMode: "Proxy" }] } },
    });
    await inForce("x/lb:http", ({ ingressIps }) => ingressIps.map(formatIp).join(), "203.0.113.9");
    await inForce("x/lb:http", ({ external }) => text(external), "10.80.0.5 8080 here");
    const found = proxy.inForce.get("x/lb:http")!;
    expect(text(found.internal)).toBe("10.80.0.5 8080 here, 10.80.1.5 8080");
    expect(found).toMatchObject({ keepsClient: true, affinitySeconds: 10_800, sourceRanges: [{ prefix: 24 }] });
    expect(found.externalIps.map(formatIp)).toEqual(["203.0.113.1"]);
    expect(found.nodePort).toBeGreaterThan(0);
    const asked = async (): Promise<unknown[]> => {
      const answer = await fetch(`http://127.0.0.1:${found.healthCheckNodePort}/`);
      return [answer.status, await answer.json()];
    };
    const body = { service: { namespace: "x", name: "lb" }, serviceProxyHealthy: true };
    expect(await asked()).toEqual([200, { ...body, localEndpoints: 1 }]);
    await setReady("one", false);
    await eventually(async () => (await asked())[0] === 503, "no endpoint here");
    await setReady("one", true);
    await server.ask("DELETE", "/api/v1/namespaces/x/services/lb");
    await eventually(() => !proxy.inForce.has("x/lb:http"), "the end of the service");
    await eventually(
      () =>
        asked().then(
          () => false,
          () => true,
        ),
      "the end of its health check",
    );
  });

  test("that say they have the same address have it by age, and the younger is told so as kubectl shows it", async () => {
    const externalIPs = ["203.0.113.50"];
    await service("b-old", { ports: [port], externalIPs });
    const externals = ({ externalIps }: ServicePort) => externalIps.map(formatIp).join();
    await inForce("x/b-old:http", externals, "203.0.113.50");
    // Ages are told in whole seconds; of one second the first by name has it.
    await service("c-young", { ports: [port], externalIPs });
    await inForce("x/c-young:http", externals, "");
    const message = '203.0.113.50 port 80/tcp is left to service "x/b-old", which has it too and is older';
    expect(services.refusalOf("x/c-young:http")).toBe(message);
    expect(services.degraded).toEqual([`Service "x/c-young": ${message}`]);
    await eventually(async () => {
      const { body } = await server.ask("GET", "/api/v1/namespaces/x/events");
      return mapsIn(body, "items").some(
        (event) =>
          event["reason"] === "AddressConflict" &&
          event["message"] === message &&
          mapIn(event, "involvedObject")["name"] === "c-young",
      );
    }, "the event");
    await server.ask("DELETE", "/api/v1/namespaces/x/services/b-old");
    await inForce("x/c-young:http", externals, "203.0.113.50");
    expect(services.degraded).toEqual([]);
    await server.ask("DELETE", "/api/v1/namespaces/x/services/c-young");
  });

  test("keep to the node's zone where they are to", async () => {
    await service("near", { ports: [port], trafficDistribution: "PreferClose" });
    await inForce("x/near:http", ({ cluster }) => text(cluster), "10.80.0.5 8080 here");
    // What the node is told of itself counts, too.
    const zone = { "topology.kubernetes.io/zone": "z1" };
    await server.ask("PATCH", "/api/v1/nodes/here", { metadata: { labels: zone } });
    await inForce("x/near:http", ({ cluster }) => text(cluster), "10.80.1.5 8080");
  });

  test("stay where the API server is away", async () => {
    const before = [...proxy.inForce.keys()];
    await server.signal("SIGKILL");
    await eventually(() => services.fault !== undefined, "the fault");
    expect([...proxy.inForce.keys()]).toEqual(before);
    await server.startAgain();
    await eventually(() => services.fault === undefined, "the end of the fault", 60_000);
    expect([...proxy.inForce.keys()]).toEqual(before);
  });
});

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { AgentHome, eventually, resultOf } from "../support/agent-process.ts";
import { freePorts } from "../support/free-ports.ts";
import { NetworkSandbox } from "../support/network-sandbox.ts";
import { describeWith } from "../support/requires.ts";
import { TestBrowser } from "../ui/browser.ts";
import { ApiServer } from "./api-server.ts";
import { ControllerProcess } from "./controller-process.ts";
import { account, agentPod, shipChart, tokenOf } from "./operators.ts";
import { addNode } from "./registry-node.ts";
import { requestToken } from "./service-account.ts";

const address = "192.0.2.1";
const agentPort = 10_352;
const needs = ["linux", "root", "nft", "kube-apiserver", "etcd", "openssl", "helm", "chromium"] as const;
/** A browser, an API server and an agent on a busy machine. */
const patience = { timeout: 60_000 };
const rbac = "/apis/rbac.authorization.k8s.io/v1";
const accounts = "/api/v1/namespaces/default/serviceaccounts";

describeWith("the page for a team, at a real API server", needs, () => {
  const stack = new AsyncDisposableStack();
  let server: ApiServer;
  let controller: ControllerProcess;
  let browser: TestBrowser;
  let home: AgentHome;
  let sandbox: NetworkSandbox;
  let origin: string;

  beforeAll(async () => {
    const directory = mkdtempSync(join(tmpdir(), "pt-page-"));
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    sandbox = stack.use(await NetworkSandbox.enter("pt-tp-"));
    // Where this process is now.
    browser = stack.use(await TestBrowser.start());
    // The API server passes nothing on to loopback addresses.
    await sandbox.node(`ip addr add ${address}/32 dev lo`);
    server = stack.use(await ApiServer.start());
    await shipChart(server, ["metrics.enabled", "controller.enabled", "controller.page.enabled"]);
    for (const name of ["node-a", "node-b"]) await addNode(server, name, address, undefined);
    await agentPod(server, { node: "node-a", podIP: address, port: agentPort });
    await agentPod(server, { node: "node-b", podIP: address, port: 10_399 });
    const token = join(directory, "agent-token");
    writeFileSync(token, await requestToken(server, {}), { mode: 0o600 });
    const access = { server: server.url, ca: server.ca, token };
    home = stack.use(new AgentHome({ metrics: { listen: `${address}:${agentPort}`, ...access } }));
    const agent = await home.start({ PIPETTE_NODE_NAME: "node-a" });
    await agent.logged(({ message }) => message === "metrics are served");
    await add("first");
    const [port = 0] = await freePorts(1);
    origin = `https://127.0.0.1:${port}`;
    controller = stack.use(await ControllerProcess.start(server, ["--page", `127.0.0.1:${port}`]));
    await controller.logged("the page is served");
  }, 240_000);
  afterEach(() => browser?.closePages());
  afterAll(() => stack.disposeAsync());

  async function add(name: string): Promise<void> {
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name};K8S_POD_UID=u-${name}`;
    resultOf(await home.cmd("cmdAdd", name, { netns: await sandbox.addPod(name), args }));
  }

  /** Somebody's token, for so many seconds. */
  async function person(name: string, roles: readonly string[], seconds = 3_600): Promise<string> {
    await account(server, name, roles);
    return await tokenOf(server, name, { expirationSeconds: seconds });
  }

  async function open(): Promise<Page> {
    const page = await browser.page({ ignoreHTTPSErrors: true });
    await page.goto(`${origin}/`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor(patience);
    return page;
  }

  async function signIn(page: Page, token: string): Promise<void> {
    await page.getByLabel("Token", { exact: true }).fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
  }

  test("a viewer signs in with a token of their account, and sees a new pod as soon as the tool would", async () => {
    const page = await open();
    await signIn(page, await person("ann", ["pipette-viewer"]));
    await page.getByText("Signed in as system:serviceaccount:default:ann").waitFor(patience);
    await page.goto(`${origin}/#/map?node=node-a`);
    await page.locator("tbody").getByText("shop/first").waitFor(patience);
    await page.getByRole("button", { name: "node-b does not answer" }).waitFor(patience);
    await add("second");
    await page.locator("tbody").getByText("shop/second").waitFor(patience);
    // No command of a node's is offered.
    expect(await page.locator("nav a").allTextContents()).not.toContain("Trace");
  }, 120_000);

  test("tokens that are wrong, of another audience, of an account that is gone or has no right open nothing", async () => {
    const page = await open();
    const refused = async (token: string, why: string | RegExp): Promise<void> => {
      await signIn(page, token);
      await page.getByRole("alert").getByText(why).waitFor(patience);
      await page.reload();
      await page.getByRole("heading", { name: "Sign in" }).waitFor(patience);
    };
    await refused("e30.e30.wrong", "the API server does not know this token");
    const bob = await person("bob", ["pipette-viewer"]);
    await refused(await tokenOf(server, "bob", { audiences: ["agent.pipette.io/node-a"] }), "does not know this token");
    await refused(
      await person("nobody", []),
      /"system:serviceaccount:default:nobody" may not list pods in namespace "kube-system"/,
    );
    expect((await server.ask("DELETE", `${accounts}/bob`)).status).toBe(200);
    await refused(bob, "the API server does not know this token");
    expect(JSON.stringify(controller.log)).not.toContain(bob);
  }, 180_000);

  test("two people at once see what each may; who loses the right, or their account, sees nothing any more", async () => {
    const [ann, carl] = [await open(), await open()];
    await signIn(ann, await person("ann-2", ["pipette-viewer"]));
    await signIn(carl, await person("carl", ["pipette-viewer"]));
    for (const page of [ann, carl]) {
      await page.getByText("Signed in as").waitFor(patience);
      await page.goto(`${origin}/#/map?node=node-a`);
      await page.locator("tbody").getByText("shop/first").waitFor(patience);
    }
    await server.ask("DELETE", `${rbac}/namespaces/kube-system/rolebindings/pipette-viewer-carl`);
    await eventually(async () => (await carl.getByText("shop/first").count()) === 0, "carl's pods to go", 60_000);
    expect(await ann.locator("tbody").getByText("shop/first").count()).toBe(1);
    await server.ask("DELETE", `${accounts}/ann-2`);
    await ann.getByText("The session has ended").waitFor(patience);
    expect(await ann.getByText("shop/first").count()).toBe(0);
    await controller.logged("a session of the page has ended");
  }, 240_000);

  test("a viewer of one namespace is told about its policies, about no other's, and of no node", async () => {
    for (const name of ["shop", "vault"]) {
      await server.create("/api/v1/namespaces", { metadata: { name } });
      await server.create(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: "default" } });
    }
    for (const [namespace, name] of [
      ["shop", "web"],
      ["shop", "db"],
      ["vault", "safe"],
    ] as const)
      await policyPod(namespace, name);
    await server.create("/apis/networking.k8s.io/v1/namespaces/shop/networkpolicies", {
      metadata: { name: "closed" },
      spec: { podSelector: { matchLabels: { app: "db" } }, policyTypes: ["Ingress"] },
    });
    const page = await open();
    await signIn(page, await viewerOf("shop", "erin"));
    await page.getByText("Signed in as").waitFor(patience);
    expect(await page.locator("nav a").allTextContents()).toEqual(["Policies"]);
    const ask = async (from: string, to: string): Promise<void> => {
      await page.getByLabel("From").fill(from);
      await page.getByLabel("To", { exact: true }).fill(to);
      await page.getByRole("button", { name: "Ask", exact: true }).click();
    };
    await ask("shop/web", "shop/db");
    await page.getByText("shop/web may not reach shop/db: shop/closed isolates shop/db").first().waitFor(patience);
    await ask("shop/web", "vault/safe");
    await page.getByText(/erin.* cannot list resource "pods".* in the namespace "vault"/).waitFor(patience);
    // What they may not have done is not done either where they ask for it without the page.
    const status = await page.evaluate<number>(`fetch("/api/v1/commands", {
      method: "POST",
      headers: { "content-type": "application/json", "x-pipette-page": localStorage.getItem("pipette-page-key") },
      body: JSON.stringify({ name: "matrix", fields: {} }),
    }).then(({ status }) => status)`);
    expect(status).toBe(404);
  }, 180_000);

  /** Lists pods and policies of that namespace, and names of all. */
  async function viewerOf(namespace: string, name: string): Promise<string> {
    const token = await person(name, []);
    const subjects = [{ kind: "ServiceAccount", name, namespace: "default" }];
    const group = "rbac.authorization.k8s.io";
    await server.create(`${rbac}/namespaces/${namespace}/roles`, {
      metadata: { name: "looker", namespace },
      rules: [
        { apiGroups: [""], resources: ["pods"], verbs: ["list"] },
        { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list"] },
      ],
    });
    await server.create(`${rbac}/namespaces/${namespace}/rolebindings`, {
      metadata: { name: "looker", namespace },
      roleRef: { apiGroup: group, kind: "Role", name: "looker" },
      subjects,
    });
    await server.create(`${rbac}/clusterroles`, {
      metadata: { name: "namespaces-looker" },
      rules: [{ apiGroups: [""], resources: ["namespaces"], verbs: ["list"] }],
    });
    await server.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: "namespaces-looker" },
      roleRef: { apiGroup: group, kind: "ClusterRole", name: "namespaces-looker" },
      subjects,
    });
    return token;
  }

  let lastAddress = 1;
  async function policyPod(namespace: string, name: string): Promise<void> {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    const containers = [{ name: "c", image: "none" }];
    const spec = { nodeName: "node-b", automountServiceAccountToken: false, containers };
    const pod = { metadata: { name, labels: { app: name } }, spec };
    await eventually(async () => (await server.ask("POST", path, pod)).status === 201, `pod ${name}`);
    const ip = `10.80.0.${++lastAddress}`;
    await server.ask("PATCH", `${path}/${name}/status`, { status: { phase: "Running", podIP: ip, podIPs: [{ ip }] } });
  }

  test("who may list all of the cluster sees who reaches whom, by their own right", async () => {
    const token = await person("fred", ["pipette-viewer"]);
    await server.create(`${rbac}/clusterrolebindings`, {
      metadata: { name: "fred-views" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "policy-looker" },
      subjects: [{ kind: "ServiceAccount", name: "fred", namespace: "default" }],
    });
    await server.create(`${rbac}/clusterroles`, {
      metadata: { name: "policy-looker" },
      rules: [
        { apiGroups: [""], resources: ["pods", "namespaces"], verbs: ["list"] },
        { apiGroups: ["networking.k8s.io"], resources: ["networkpolicies"], verbs: ["list"] },
      ],
    });
    const page = await open();
    await signIn(page, token);
    await page.getByText("Signed in as").waitFor(patience);
    await page.goto(`${origin}/#/policies`);
    await page.getByRole("region", { name: "Who reaches whom" }).getByText("shop/").first().waitFor(patience);
    await page.getByLabel("NetworkPolicies in YAML or JSON").fill(
      JSON.stringify({
        ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy" },
        metadata: { name: "quiet", namespace: "shop" },
        spec: { podSelector: { matchLabels: { app: "web" } }, policyTypes: ["Ingress"] },
      }),
    );
    await page.getByRole("button", { name: "Say what would change" }).click();
    await page.getByText(/be opened, and \d+ closed/).waitFor(patience);
  }, 120_000);

  test("a controller that is started anew has forgotten who was signed in, and they sign in again", async () => {
    const token = await person("dora", ["pipette-viewer"]);
    const page = await open();
    await signIn(page, token);
    await page.getByText("Signed in as").waitFor(patience);
    const port = new URL(origin).port;
    await controller.restart("SIGKILL", ["--page", `127.0.0.1:${port}`]);
    await page.getByText("The session has ended").waitFor(patience);
    await signIn(page, token);
    await page.getByText("Signed in as").waitFor(patience);
  }, 180_000);

  test("its certificate is the controller's own, for the names of its service", async () => {
    const answer = await fetch(`${origin}/`, { tls: { ca: await controller.ca() } });
    expect([answer.status, answer.headers.get("content-security-policy")]).toEqual([
      200,
      expect.stringContaining("default-src 'none'"),
    ]);
  });
});

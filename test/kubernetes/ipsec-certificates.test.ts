import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { ClusterCertificates } from "../../agent/certificates/cluster-certificates.ts";
import { PairStore } from "../../agent/certificates/pair-store.ts";
import { SigningRequests } from "../../agent/certificates/signing-requests.ts";
import { GivenAuthoritySource, KeptAuthoritySource, TunnelSigner } from "../../controller/signing/mod.ts";
import { bundleOf, makeRequest } from "../../shared/certificates/mod.ts";
import { ApiClient, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { pathOf, plainObjects } from "../manifests/manifest.ts";
import { eventually } from "../support/eventually.ts";
import { describeWith } from "../support/requires.ts";
import { type ApiAnswer, ApiServer, adminToken } from "./api-server.ts";
import { installController } from "./controller-process.ts";
import { addNode } from "./registry-node.ts";
import { agentToken, requestToken } from "./service-account.ts";

const system = "/api/v1/namespaces/kube-system";
const requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const authority = `${system}/secrets/pipette-ipsec-ca`;
const agents = { namespace: "kube-system", account: "pipette-agent" };
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ownRequest = makeRequest("pipette.io", "node-a", privateKey);

/** A request that OpenSSL makes. */
const requestBy = async (...words: readonly string[]): Promise<string> =>
  (await execa("openssl", ["req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "/dev/null", ...words])).stdout;
const named = (subject: string, names: string): Promise<string> =>
  requestBy("-subj", subject, "-addext", `subjectAltName=${names}`);

interface Answered {
  readonly certificate?: string;
  readonly conditions?: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
}

describeWith("certificates for IPsec at a real API server", ["kube-apiserver", "kubectl", "etcd", "openssl"], () => {
  let server: ApiServer;
  let directory: string;
  let controllerToken: string;
  let onA: string;
  const open: AsyncDisposable[] = [];
  const answers: string[] = [];

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "pt-ipsec-"));
    server = await ApiServer.start();
    await installController(server);
    for (const object of plainObjects("pipette-ipsec-certificates.yaml")) await server.create(pathOf(object), object);
    for (const [number, node] of ["node-a", "node-b"].entries())
      await addNode(server, node, `192.0.2.${number + 1}`, `10.80.${number}.0/24`);
    onA = await agentToken(server, "node-a");
    const asked = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {} };
    const { body } = await server.ask("POST", `${system}/serviceaccounts/pipette-controller/token`, asked);
    controllerToken = (body["status"] as { token: string }).token;
    // Somebody else who may ask for certificates.
    await server.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
      metadata: { name: "others-ask" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "pipette-agent-ipsec" },
      subjects: [{ kind: "ServiceAccount", name: "other", namespace: "kube-system" }],
    });
    await server.create(`${system}/serviceaccounts`, { metadata: { name: "other" } });
    const other = { signerName: "kubernetes.io/kube-apiserver-client", usages: ["client auth"] };
    await eventually(async () => (await ask("policy", {}, onA, other)).status === 422, "the policy");
  });
  afterEach(async () => {
    for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]();
    answers.length = 0;
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  const ask = (name: string, changes: object, token: string, more: object = {}): Promise<ApiAnswer> =>
    server.ask(
      "POST",
      requests,
      {
        ...{ apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name } },
        spec: {
          request: btoa(ownRequest),
          signerName: "pipette.io/ipsec-tunnel",
          usages: ["ipsec tunnel"],
          ...more,
          ...changes,
        },
      },
      token,
    );

  const answerTo = (name: string): Promise<Answered> =>
    eventually(async () => {
      const { status = {} } = (await server.ask("GET", `${requests}/${name}`)).body as { status?: Answered };
      const isOver = (status.conditions ?? []).some(({ type }) => type === "Denied" || type === "Failed");
      return isOver || status.certificate !== undefined ? status : undefined;
    }, `an answer to ${name}`);

  /** A client of the API server with that token. */
  function clientOf(token: string): ApiClient {
    const file = join(directory, `token-${crypto.randomUUID()}`);
    writeFileSync(file, token, { mode: 0o600 });
    const client = new ApiClient(
      serviceAccountAccess({ server: server.url, ca: server.ca, token: file }, {}, "server"),
    );
    open.push(client);
    return client;
  }

  function startSigner(given?: string, publishedMs = 1_000): TunnelSigner {
    const client = clientOf(controllerToken);
    const kept = new KeptAuthoritySource(client, "kube-system", { publishedMs });
    const source = given === undefined ? kept : new GivenAuthoritySource(given);
    const signer = new TunnelSigner({
      ...{ client, agents, everyMs: 500, answered: (result) => void answers.push(result) },
      ...{ authority: source, logger: createLogger("error", () => undefined) },
    });
    open.push(signer);
    return signer;
  }

  function startAgent(node: string, token: string): ClusterCertificates {
    const own = join(directory, node);
    const agent = new ClusterCertificates(
      new SigningRequests(clientOf(token), { node, namespace: "kube-system", lifetimeS: 86_400 }),
      {
        ...{ node, directory: own, store: new PairStore(own), trustDirectory: join(directory, `${node}-cacerts`) },
        ...{ reread: async () => undefined, logger: createLogger("error", () => undefined) },
        times: { everyMs: 300, spreadMs: 0, refusedMs: 60_000 },
      },
    );
    open.push(agent);
    return agent;
  }

  const published = async (): Promise<string> => {
    const { body } = await server.ask("GET", `${system}/configmaps/pipette-ipsec-ca`);
    return (body["data"] as Record<string, string> | undefined)?.["ca.crt"] ?? "";
  };

  test("without a controller a node waits, and says so; with one it has what OpenSSL takes for its certificate", async () => {
    const agent = startAgent("node-a", onA);
    await eventually(() => agent.problem()?.includes('configmap "pipette-ipsec-ca"'), "the reason");
    startSigner();
    const files = await eventually(() => agent.current(), "a certificate");
    const verified = await execa("openssl", [
      ...["verify", "-x509_strict", "-verify_hostname", "node-a", "-CAfile", files.caCertificate, files.certificate],
    ]);
    expect(verified.stdout).toBe(`${files.certificate}: OK`);
    const { stdout } = await execa("openssl", [
      "x509",
      "-in",
      files.certificate,
      "-noout",
      "-subject",
      "-ext",
      "extendedKeyUsage",
    ]);
    expect(stdout).toMatch(/^subject=O = pipette.io, CN = node-a\n.*\n *IPSec Tunnel/);
    expect(agent.problem()).toBeUndefined();
    const { body } = await server.ask("GET", requests);
    const items = body["items"] as { metadata: { name: string }; spec: object; status: Answered }[];
    const own = items.find(({ metadata }) => metadata.name.startsWith("pipette-ipsec-node-a-"));
    expect(own?.spec).toMatchObject({
      expirationSeconds: 86_400,
      username: "system:serviceaccount:kube-system:pipette-agent",
    });
    expect(own?.status.conditions).toMatchObject([{ type: "Approved", reason: "AgentOfNode" }]);
    expect(answers).toEqual(["signed"]);
  });

  describe("who asks for what is not his own is refused", () => {
    let tokens: Record<"a" | "b" | "unbound" | "other" | "nowhere", string>;
    beforeAll(async () => {
      const pod = await server.create(`${system}/pods`, {
        metadata: { name: "other" },
        spec: { serviceAccountName: "other", nodeName: "node-a", containers: [{ name: "c", image: "none" }] },
      });
      const { uid } = pod["metadata"] as { uid: string };
      const bound = { boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "other", uid } };
      const asked = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: bound };
      const other = await server.create(`${system}/serviceaccounts/other/token`, asked);
      tokens = {
        ...{ a: onA, b: await agentToken(server, "node-b"), unbound: await requestToken(server, {}) },
        ...{ other: (other["status"] as { token: string }).token, nowhere: await agentToken(server, "node-c") },
      };
    });

    const wholeName = "/O=pipette.io/CN=node-a";
    test.each<[string, keyof typeof tokens, () => Promise<object>, string]>([
      ["another node's name", "b", async () => ({}), "NodeRefused"],
      ["a token of no pod", "unbound", async () => ({}), "TokenRefused"],
      ["another account", "other", async () => ({}), "RequesterRefused"],
      [
        "another name beside its own",
        "a",
        async () => ({ request: btoa(await named(wholeName, "DNS:node-a,DNS:node-b")) }),
        "NamesRefused",
      ],
      [
        "an address",
        "a",
        async () => ({ request: btoa(await named(wholeName, "DNS:node-a,IP:192.0.2.2")) }),
        "NamesRefused",
      ],
      [
        "another organization",
        "a",
        async () => ({ request: btoa(await named("/O=system:masters/CN=node-a", "DNS:node-a")) }),
        "SubjectRefused",
      ],
      [
        "an authority's certificate",
        "a",
        async () => ({
          request: btoa(
            await requestBy(
              "-subj",
              wholeName,
              "-addext",
              "subjectAltName=DNS:node-a",
              "-addext",
              "basicConstraints=CA:TRUE",
            ),
          ),
        }),
        "ExtensionsRefused",
      ],
      ["another usage", "a", async () => ({ usages: ["client auth"] }), "UsagesRefused"],
      ["one more usage", "a", async () => ({ usages: ["ipsec tunnel", "server auth"] }), "UsagesRefused"],
      [
        "a short key",
        "a",
        async () => ({
          request: btoa(
            await requestBy("-subj", wholeName, "-addext", "subjectAltName=DNS:node-a", "-newkey", "rsa:1024"),
          ),
        }),
        "KeyRefused",
      ],
      [
        "a node that there is not",
        "nowhere",
        async () => ({ request: btoa(await named("/O=pipette.io/CN=node-c", "DNS:node-c")) }),
        "NodeUnknown",
      ],
    ])("%s", async (what, who, changes, reason) => {
      const name = `hostile-${what.replaceAll(/[^a-z]/g, "-")}`;
      expect((await ask(name, await changes(), tokens[who])).status).toBe(201);
      startSigner();
      const { conditions = [], certificate } = await answerTo(name);
      expect([certificate, conditions.map(({ type }) => type), conditions[0]?.reason]).toEqual([
        undefined,
        ["Denied"],
        reason,
      ]);
      await eventually(() => answers.includes("denied"), "its count");
    });

    test("a pod that is gone by then", async () => {
      const name = "agent-node-gone";
      await addNode(server, "node-gone", "192.0.2.9", "10.80.9.0/24");
      const token = await agentToken(server, "node-gone");
      const request = btoa(await named("/O=pipette.io/CN=node-gone", "DNS:node-gone"));
      expect((await ask("of-gone", { request }, token)).status).toBe(201);
      await server.ask("DELETE", `${system}/pods/${name}?gracePeriodSeconds=0`);
      startSigner();
      expect((await answerTo("of-gone")).conditions).toMatchObject([{ type: "Denied", reason: "PodRefused" }]);
    });

    test("what somebody with more rights has approved is not signed either", async () => {
      expect((await ask("approved", {}, tokens.b)).status).toBe(201);
      await server.kubectl("certificate", "approve", "approved");
      startSigner();
      const { certificate, conditions = [] } = await answerTo("approved");
      expect([certificate, conditions.map(({ type, reason }) => [type, reason])]).toEqual([
        undefined,
        [
          ["Approved", "KubectlApprove"],
          ["Failed", "NodeRefused"],
        ],
      ]);
    });
  });

  test("an agent asks for nothing but this, and sees and decides nothing", async () => {
    const other = { signerName: "kubernetes.io/kube-apiserver-client", usages: ["client auth"] };
    expect(await ask("for-the-server", other, onA)).toMatchObject({
      status: 422,
      body: { message: expect.stringContaining("an agent asks for a certificate for IPsec and for no other") },
    });
    for (const [method, path] of [
      ["GET", requests],
      ["GET", authority],
      ["PUT", `${requests}/x/approval`],
      ["PUT", `${requests}/x/status`],
      ["DELETE", `${requests}/x`],
    ] as const)
      expect((await server.ask(method, path, undefined, onA)).status).toBe(403);
  });

  test("a controller signs for no other signer", async () => {
    const client = { signerName: "kubernetes.io/kube-apiserver-client", usages: ["client auth"] };
    await ask("of-another", client, adminToken);
    const { body } = await server.ask("GET", `${requests}/of-another`);
    const conditions = [{ type: "Approved", status: "True", reason: "x", message: "x" }];
    const answer = await server.ask(
      "PUT",
      `${requests}/of-another/approval`,
      { ...body, status: { conditions } },
      controllerToken,
    );
    expect(answer).toMatchObject({ status: 403, body: { message: expect.stringContaining("signer") } });
    expect((await server.ask("GET", `${system}/secrets`, undefined, controllerToken)).status).toBe(403);
  });

  test("two controllers have one authority, and each request is signed once", async () => {
    await server.ask("DELETE", authority);
    await server.ask("DELETE", `${system}/configmaps/pipette-ipsec-ca`);
    const names = Array.from({ length: 8 }, (_, index) => `of-two-${index}`);
    for (const name of names) await ask(name, {}, onA);
    startSigner();
    startSigner();
    const certificates = await Promise.all(names.map(async (name) => atob((await answerTo(name)).certificate ?? "")));
    const [only, ...more] = bundleOf(await published());
    expect(more).toEqual([]);
    for (const text of certificates)
      expect(bundleOf(text)[0]?.certificate.verify(only?.certificate.publicKey as never)).toBe(true);
    await eventually(() => answers.length >= names.length, "their count");
    expect(answers).toEqual(names.map(() => "signed"));
  });

  test("an authority is changed while nodes trust both, and each node follows by itself", async () => {
    startSigner(undefined, 3_000);
    const agent = startAgent("node-a", onA);
    const before = await eventually(async () => {
      const [old] = bundleOf(await published());
      const files = agent.current();
      const is = files && bundleOf(readFileSync(files.certificate, "utf8"))[0]?.certificate;
      return old !== undefined && is?.verify(old.certificate.publicKey) === true ? old : undefined;
    }, "a certificate of the old authority");
    await server.kubectl(
      ...["-n", "kube-system", "patch", "secret", "pipette-ipsec-ca", "--type=json"],
      ...["-p", '[{"op":"remove","path":"/data/ca.key"}]'],
    );
    const [next, old] = await eventually(async () => {
      const both = bundleOf(await published());
      return both.length === 2 ? both : undefined;
    }, "both authorities");
    expect(old?.text).toBe(before.text);
    const trusted = () => bundleOf(readFileSync(agent.current()?.caCertificate ?? "", "utf8")).length;
    await eventually(() => trusted() === 2, "the node's trust");
    await eventually(() => {
      const own = bundleOf(readFileSync(agent.current()?.certificate ?? "", "utf8"))[0]?.certificate;
      return own?.verify(next?.certificate.publicKey as never);
    }, "a certificate of the new one");
    expect(agent.problem()).toBeUndefined();
    // The last step: nobody shows one of the old authority any more.
    const onlyNext = btoa(next?.text ?? "");
    await server.ask("PATCH", authority, { data: { "ca.crt": onlyNext } });
    await eventually(() => trusted() === 1, "the new one alone");
  });

  test("an authority that is given signs, and one that cannot does not", async () => {
    const given = mkdtempSync(join(directory, "given-"));
    const [cert, key] = ["ca.crt", "ca.key"].map((name) => join(given, name));
    const isCa = ["-subj", "/O=Operator/CN=Root", "-addext", "basicConstraints=critical,CA:TRUE", "-days", "5"];
    await execa("openssl", [
      "req",
      "-x509",
      "-newkey",
      "rsa:2048",
      "-nodes",
      "-keyout",
      key ?? "",
      "-out",
      cert ?? "",
      ...isCa,
    ]);
    startSigner(given);
    await ask("of-given", {}, onA);
    const [issued] = bundleOf(atob((await answerTo("of-given")).certificate ?? ""));
    expect(issued?.certificate.issuer).toBe("O=Operator\nCN=Root");
    // Not longer than who signs it.
    expect(issued?.certificate.validToDate).toEqual(
      bundleOf(readFileSync(cert ?? "", "utf8"))[0]?.certificate.validToDate,
    );
    writeFileSync(
      key ?? "",
      String(
        createPrivateKey(privateKey.export({ type: "pkcs1", format: "pem" })).export({ type: "pkcs8", format: "pem" }),
      ),
    );
    await expect(new GivenAuthoritySource(given).current()).rejects.toThrow(/ca.key is not the key/);
    await expect(new GivenAuthoritySource(directory).current()).rejects.toThrow(/ca.(crt|key): .*ENOENT/);
  });
});

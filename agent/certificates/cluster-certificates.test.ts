import { createPublicKey } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Issued, issueMember, readRequest } from "../../shared/certificates/mod.ts";
import { ApiClient, type ApiRequest } from "../../shared/kubernetes/mod.ts";
import { createLogger } from "../../shared/log.ts";
import { type Play, ScriptedTransport } from "../../test/fakes/kubernetes/scripted-transport.ts";
import { authority, nodeKeys, nodePair } from "../../test/fakes/node-pairs.ts";
import { eventually } from "../../test/support/eventually.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { ClusterCertificates } from "./cluster-certificates.ts";
import type { HeldFiles } from "./held-certificate.ts";
import { PairStore } from "./pair-store.ts";
import { SigningRequests } from "./signing-requests.ts";

interface Request {
  readonly spec: { readonly request: string; readonly signerName: string; readonly expirationSeconds: number };
  status: object;
}

/** An API server with a controller that answers requests as the test wants it. */
class Cluster {
  ca: string | undefined;
  readonly requests = new Map<string, Request>();
  isAway = false;
  /** Of the API server's clock against ours. */
  skewMs = 0;
  /** What becomes of a request when it is made. */
  answer: (request: Request) => object = () => ({});

  readonly client = new ApiClient(
    {
      server: "https://s",
      tls: async () => ({}),
      credentials: { authorization: async () => undefined, renew: async () => false },
    },
    { transport: new ScriptedTransport((request) => this.#play(request)) },
  );

  #play({ method, path, body }: ApiRequest): Play {
    if (this.isAway) return { t: "break", error: new Error("the API server is away") };
    if (path.includes("/configmaps/"))
      return this.ca === undefined ? { t: "answer", status: 404, body: {} } : said({ data: { "ca.crt": this.ca } });
    if (method === "POST") {
      const object = JSON.parse(body ?? "{}") as Request & { metadata: { name: string } };
      object.status = this.answer(object);
      this.requests.set(object.metadata.name, object);
      const creationTimestamp = new Date(Date.now() + this.skewMs).toISOString();
      return said({ ...object, metadata: { ...object.metadata, creationTimestamp } }, 201);
    }
    const there = this.requests.get(path.slice(path.lastIndexOf("/") + 1));
    return there === undefined ? { t: "answer", status: 404, body: {} } : said(there);
  }
}

const said = (body: object, status = 200): Play => ({ t: "answer", status, body });

const hourMs = 60 * 60_000;

/** What a controller with this authority answers. */
const signedBy =
  (ca: Issued, { node = "node-a", from = -1, until = 24, key = undefined as string | undefined } = {}) =>
  ({ spec }: Request): object => {
    const { publicKey } = readRequest(atob(spec.request));
    const member = {
      organization: "pipette.io",
      name: node,
      publicKey: key === undefined ? publicKey : createPublicKey(key),
    };
    const validity = { from: new Date(Date.now() + from * hourMs), until: new Date(Date.now() + until * hourMs) };
    return { certificate: btoa(issueMember(member, ca, validity)) };
  };

const condition = (type: string) => ({ conditions: [{ type, status: "True", reason: "Why", message: "because" }] });

let cluster: Cluster;
let scratch: ReturnType<typeof scratchDir>;
let now: Date;
const open: ClusterCertificates[] = [];
const ca = authority();

beforeEach(() => {
  cluster = new Cluster();
  cluster.ca = ca.cert;
  cluster.answer = signedBy(ca);
  scratch = scratchDir();
  now = new Date();
});
afterEach(async () => {
  for (const one of open.splice(0)) await one[Symbol.asyncDispose]();
  scratch[Symbol.dispose]();
});

const directory = (): string => join(scratch.path, "ipsec");
const askedKey = (): string => join(directory(), "asked-key.pem");

function start(refusedMs = 0): { certificates: ClusterCertificates; changes: HeldFiles[] } {
  const certificates = new ClusterCertificates(
    new SigningRequests(cluster.client, { node: "node-a", namespace: "ns", lifetimeS: 86_400 }),
    {
      ...{ node: "node-a", directory: directory(), store: new PairStore(directory()) },
      trustDirectory: join(scratch.path, "cacerts"),
      logger: createLogger("error", () => undefined),
      reread: async () => undefined,
      now: () => now,
      times: { everyMs: 10, spreadMs: 0, refusedMs },
    },
  );
  open.push(certificates);
  const changes: HeldFiles[] = [];
  certificates.onChange = (files) => {
    if (files !== undefined) changes.push(files);
  };
  return { certificates, changes };
}

const text = (files: HeldFiles | undefined): string => readFileSync(files?.certificate ?? "", "utf8");
const current = (certificates: ClusterCertificates): Promise<HeldFiles> =>
  eventually(() => certificates.current(), "a certificate");

describe("a node asks its cluster for a certificate", () => {
  test("and shows it: its key never leaves the node, and the request says what it is for", async () => {
    const { certificates, changes } = start();
    const files = await current(certificates);
    expect([changes, certificates.problem()]).toEqual([[files], undefined]);
    const [[name, { spec }] = ["", { spec: { request: "" } }]] = [...cluster.requests];
    expect(name).toMatch(/^pipette-ipsec-node-a-[0-9a-f]{32}$/);
    expect(spec).toEqual({
      ...{ request: expect.any(String), signerName: "pipette.io/ipsec-tunnel" },
      ...{ usages: ["ipsec tunnel"], expirationSeconds: 86_400 },
    });
    expect(existsSync(askedKey())).toBe(false);
    expect(
      readRequest(atob(spec.request)).publicKey.equals(createPublicKey(readFileSync(files.privateKey, "utf8"))),
    ).toBe(true);
  });

  test("and waits while no controller answers, and says so; one request is enough, also after a restart", async () => {
    cluster.answer = () => ({});
    const { certificates } = start();
    await eventually(() => certificates.problem()?.includes("waits for a controller that approves"), "the reason");
    expect(certificates.current()).toBeUndefined();
    await open.pop()?.[Symbol.asyncDispose]();
    for (const request of cluster.requests.values()) request.status = condition("Approved");
    const again = start().certificates;
    await eventually(() => again.problem()?.includes("waits for a controller that signs"), "the reason");
    for (const request of cluster.requests.values()) request.status = signedBy(ca)(request);
    await current(again);
    expect(cluster.requests.size).toBe(1);
  });

  test("and waits while no authority is published, or the API server is away, and says so", async () => {
    cluster.ca = undefined;
    const { certificates } = start();
    await eventually(() => certificates.problem()?.includes('configmap "pipette-ipsec-ca"'), "the reason");
    expect(cluster.requests.size).toBe(0);
    cluster.isAway = true;
    await eventually(() => certificates.problem()?.includes("away"), "the next reason");
    cluster.isAway = false;
    cluster.ca = ca.cert;
    await current(certificates);
  });

  test.each<[string, (request: Request) => object, RegExp]>([
    ["denied", () => condition("Denied"), /the controller has refused it: Why: because/],
    ["failed", () => condition("Failed"), /the controller has refused it: Why: because/],
    ["answered with nonsense", () => ({ certificate: "%" }), /of no use: the certificate cannot be read/],
    ["answered by another authority", signedBy(authority("other")), /of no use: .* is signed by none/],
    ["answered for another node", signedBy(ca, { node: "node-b" }), /of no use: .*wanted "CN=node-a"/],
    ["answered for another key", signedBy(ca, { key: nodeKeys[1] ?? "" }), /of no use: the private key is not/],
    ["answered with one that has ended", signedBy(ca, { from: -3, until: -1 }), /of no use: .*has ended at/],
    ["answered with one that holds later", signedBy(ca, { from: 1 }), /of no use: .*one of two clocks is wrong/],
  ])("which is %s: it uses nothing of it, says why, and asks with another key later", async (_, answer, is) => {
    cluster.answer = answer;
    const { certificates } = start();
    await eventually(() => is.test(certificates.problem() ?? ""), "the reason");
    expect(certificates.current()).toBeUndefined();
    cluster.answer = signedBy(ca);
    await current(certificates);
    expect(cluster.requests.size).toBeGreaterThan(1);
    expect(certificates.problem()).toBeUndefined();
  });

  test("and after a refusal asks for nothing for a while", async () => {
    cluster.answer = () => condition("Denied");
    const { certificates } = start(60_000);
    await eventually(() => certificates.problem()?.includes("because"), "the reason");
    await Bun.sleep(1_500);
    expect(cluster.requests.size).toBe(1);
    expect(certificates.problem()).toContain("because");
  });

  test("and tells how far its clock is off where it gets none", async () => {
    cluster.skewMs = 3 * hourMs;
    cluster.answer = signedBy(ca, { from: 2.9 });
    const { certificates } = start(60_000);
    await eventually(() => certificates.problem()?.includes("one of two clocks is wrong"), "the reason");
    expect(certificates.problem()).toMatch(
      /; this node's clock was 10[78]\d\d s behind the API server's when it asked$/,
    );
  });
});

describe("a node that has a certificate", () => {
  const keep = (pair = nodePair({ ca })): void => new PairStore(directory()).put(pair);

  test("has it at once after a restart, though nobody answers", async () => {
    keep();
    cluster.isAway = true;
    const { certificates } = start();
    expect(certificates.current()).toBeDefined();
    await eventually(() => certificates.problem()?.includes("away"), "the reason");
    expect(certificates.current()).toBeDefined();
  });

  test("asks for another one when 70 to 90 % of its time are over, and not before", async () => {
    keep(nodePair({ ca, from: 0, until: 10 }));
    const { certificates, changes } = start();
    const before = text(certificates.current());
    now = new Date(Date.now() + 6.9 * hourMs);
    await Bun.sleep(100);
    expect(cluster.requests.size).toBe(0);
    now = new Date(Date.now() + 9.1 * hourMs);
    await eventually(() => changes.length > 0, "another one");
    expect(text(certificates.current())).not.toBe(before);
    expect(cluster.requests.size).toBe(1);
  });

  test("keeps it where it gets no other, until it ends", async () => {
    keep(nodePair({ ca, from: 0, until: 10 }));
    cluster.answer = () => condition("Denied");
    now = new Date(Date.now() + 9.5 * hourMs);
    const { certificates } = start();
    await eventually(() => certificates.problem()?.includes("stays: the controller has refused"), "the reason");
    expect(certificates.current()).toBeDefined();
    now = new Date(Date.now() + 10.5 * hourMs);
    expect(certificates.current()).toBeUndefined();
    await eventually(() => certificates.problem()?.startsWith("the node's certificate for IPsec has ended"), "the end");
  });

  test("trusts a new authority before it asks that one, and the old one as long as it is published", async () => {
    keep();
    const next = authority("next");
    const { certificates, changes } = start();
    cluster.answer = () => ({});
    cluster.ca = `${next.cert}${ca.cert}`;
    await eventually(() => changes.length === 1, "the same certificate with both authorities");
    expect(readFileSync(changes[0]?.caCertificate ?? "", "utf8")).toBe(cluster.ca);
    await eventually(() => cluster.requests.size === 1, "a request");
    for (const request of cluster.requests.values()) request.status = signedBy(next)(request);
    await eventually(() => changes.length === 2, "a certificate of the new one");
    cluster.ca = next.cert;
    await eventually(() => changes.length === 3, "the new one alone");
    expect([readFileSync(changes[2]?.caCertificate ?? "", "utf8"), certificates.problem()]).toEqual([
      next.cert,
      undefined,
    ]);
    expect(cluster.requests.size).toBe(1);
  });

  test("asks for another one where its authority is published no more, and for no third", async () => {
    keep();
    const other = authority("other");
    cluster.ca = other.cert;
    cluster.answer = signedBy(other);
    const { changes } = start();
    await eventually(() => changes.length === 1, "another one");
    await Bun.sleep(100);
    expect([changes.length, cluster.requests.size]).toEqual([1, 1]);
  });

  test("takes up what it had asked for before it was killed, and no key twice", async () => {
    const pair = nodePair({ ca, from: -2, until: 0.1 });
    keep(pair);
    // Killed after the answer was kept, before the key that had been asked with was forgotten.
    writeFileSync(askedKey(), pair.privateKey, { mode: 0o600 });
    const { certificates, changes } = start();
    await eventually(() => changes.length === 1, "another one");
    expect(readFileSync(certificates.current()?.privateKey ?? "", "utf8")).not.toBe(pair.privateKey);
    await open.pop()?.[Symbol.asyncDispose]();
    // A key that nobody can read is none.
    writeFileSync(askedKey(), "-----BEGIN", { mode: 0o600 });
    now = new Date(Date.now() + 23 * hourMs);
    const again = start();
    await eventually(() => again.changes.length === 1, "one more");
  });
});

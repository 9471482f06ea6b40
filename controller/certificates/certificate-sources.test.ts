import { beforeEach, describe, expect, test } from "vitest";
import type { Serving } from "../../shared/certificates/mod.ts";
import type { ApiRequest } from "../../shared/kubernetes/mod.ts";
import { ApiClient } from "../../shared/kubernetes/mod.ts";
import { type Play, ScriptedTransport } from "../../test/fakes/kubernetes/scripted-transport.ts";
import { KeptCertificates } from "./kept-certificates.ts";
import { publish } from "./publish.ts";

interface Stored {
  readonly metadata: { readonly resourceVersion: string };
  readonly [key: string]: unknown;
}

/** Objects of an API server by their paths, with its rules about versions; no more of it. */
class Objects {
  readonly stored = new Map<string, Stored>();
  /** Called before the next write: what somebody else does in that moment. */
  meanwhile: (() => void) | undefined;
  readonly writes: string[] = [];
  #version = 0;

  readonly client = new ApiClient(
    {
      server: "https://s",
      tls: async () => ({}),
      credentials: { authorization: async () => undefined, renew: async () => false },
    },
    { transport: new ScriptedTransport((request) => this.#answer(request)) },
  );

  put(path: string, object: object): void {
    this.stored.set(path, {
      ...object,
      metadata: { ...(object as Stored).metadata, resourceVersion: String(++this.#version) },
    });
  }

  #answer({ method, path, body }: ApiRequest): Play {
    const say = (status: number): Play => ({ t: "answer", status, body: this.stored.get(path) ?? {} });
    if (method === "GET") return say(this.stored.has(path) ? 200 : 404);
    this.meanwhile?.();
    this.meanwhile = undefined;
    const object = JSON.parse(body ?? "{}") as Stored & { metadata: { name: string } };
    const at = method === "POST" ? `${path}/${object.metadata.name}` : path;
    const there = this.stored.get(at);
    if (method === "POST" ? there !== undefined : there === undefined) return say(method === "POST" ? 409 : 404);
    if (method === "PUT" && there?.metadata.resourceVersion !== object.metadata.resourceVersion) return say(409);
    this.writes.push(`${method} ${at}`);
    this.put(at, method === "PATCH" ? { ...there, ...object } : object);
    return say(200);
  }
}

const names = ["c.ns.svc"];
const secretPath = "/api/v1/namespaces/ns/secrets/tls";
let objects: Objects;
beforeEach(() => {
  objects = new Objects();
});

describe("certificates that are kept in a Secret", () => {
  const source = (now = () => new Date()) =>
    new KeptCertificates(objects.client, { namespace: "ns", name: "tls" }, names, now);

  test("are made once, and are the same for every replica and every restart", async () => {
    const first = await source().current();
    expect(await source().current()).toEqual(first);
    expect(objects.writes).toEqual([`POST ${secretPath}`]);
  });

  test("of two that make them at the same time both show what the first has written", async () => {
    let winner: Promise<Serving> | undefined;
    objects.meanwhile = () => {
      winner = source().current();
    };
    const other = await source().current();
    expect(await winner).toEqual(other);
    expect(objects.stored.size).toBe(1);
  });

  test("are renewed in time, and what somebody has damaged is made anew", async () => {
    let now = new Date();
    const first = await source(() => now).current();
    now = new Date(now.getTime() + 125 * 24 * 60 * 60_000);
    const second = await source(() => now).current();
    expect([second.cert === first.cert, second.ca]).toEqual([false, first.ca]);
    objects.put(secretPath, { metadata: { name: "tls" }, data: { "tls.crt": "!", "ca.crt": "AAAA" } });
    expect((await source(() => now).current()).cert).toContain("BEGIN CERTIFICATE");
  });
});

test("an authority is published where clients look, and again where somebody has changed it", async () => {
  const place = { namespace: "ns", configMaps: ["a", "b"], apiServices: ["v1.g", "v1.none"] };
  const service = "/apis/apiregistration.k8s.io/v1/apiservices/v1.g";
  objects.put(service, { metadata: { name: "v1.g" }, spec: {} });
  const at = (name: string): string => `/api/v1/namespaces/ns/configmaps/${name}`;
  await publish(objects.client, place, "pem");
  await publish(objects.client, place, "pem");
  expect(objects.writes).toEqual([`POST ${at("a")}`, `POST ${at("b")}`, `PATCH ${service}`]);
  expect(objects.stored.get(at("a"))).toMatchObject({ data: { "ca.crt": "pem" } });
  expect(objects.stored.get(service)).toMatchObject({ spec: { caBundle: btoa("pem") } });
  objects.put(at("b"), { metadata: { name: "b" }, data: { "ca.crt": "foreign" } });
  await publish(objects.client, place, "pem");
  expect(objects.writes.slice(3)).toEqual([`PATCH ${at("b")}`]);
});

import { createPrivateKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, test } from "vitest";
import { makeRequest, tunnelCertificate } from "../../shared/certificates/mod.ts";
import { scratchDir } from "../../test/support/scratch-dir.ts";
import { type AskingPod, type Facts, judge } from "./judgement.ts";

const agents = { namespace: "kube-system", account: "pipette-agent" };
const { signerName, usage } = tunnelCertificate;
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ours = btoa(makeRequest("pipette.io", "node-a", privateKey));

const extra = {
  "authentication.kubernetes.io/pod-name": ["agent-a"],
  "authentication.kubernetes.io/pod-uid": ["uid-a"],
  "authentication.kubernetes.io/node-name": ["node-a"],
};
const good = {
  ...{ signerName, usages: [usage], request: ours, extra },
  username: "system:serviceaccount:kube-system:pipette-agent",
};

const pods: Readonly<Record<string, AskingPod>> = {
  "agent-a": { uid: "uid-a", node: "node-a", account: "pipette-agent" },
  "agent-b": { uid: "uid-b", node: "node-b", account: "pipette-agent" },
  other: { uid: "uid-o", node: "node-a", account: "default" },
};
const facts: Facts = {
  hasNode: async (name) => ["node-a", "node-b"].includes(name),
  pod: async (name) => pods[name],
};

const verdict = (changes: object) => judge({ spec: { ...good, ...changes } }, agents, facts);

/** What OpenSSL makes of these words with the same key, as it stands in a CertificateSigningRequest. */
async function requestBy(...words: readonly string[]): Promise<string> {
  using directory = scratchDir();
  const key = join(directory.path, "key");
  writeFileSync(key, privateKey.export({ type: "pkcs1", format: "pem" }));
  const own = words.includes("-newkey") ? ["-nodes", "-keyout", "/dev/null"] : ["-key", key];
  return btoa((await execa("openssl", ["req", "-new", ...own, ...words])).stdout);
}

const named = (subject: string, names: string): readonly string[] => [
  ...["-subj", subject, "-addext", `subjectAltName=${names}`],
];
const rightName = named("/O=pipette.io/CN=node-a", "DNS:node-a");

describe("a request for a node's certificate", () => {
  test("of the agent on that node is granted, of whatever program", async () => {
    const granted = { t: "granted", node: "node-a", lifetimeS: tunnelCertificate.lifetimeS.most };
    expect(await verdict({})).toMatchObject(granted);
    expect(await verdict({ request: await requestBy(...rightName) })).toMatchObject(granted);
    expect(await verdict({ request: await requestBy(...rightName, "-newkey", "rsa:4096") })).toMatchObject(granted);
    // Of an API server that does not write the node into tokens.
    const { "authentication.kubernetes.io/node-name": _, ...old } = extra;
    expect(await verdict({ extra: old })).toMatchObject(granted);
  });

  test.each([
    [undefined, tunnelCertificate.lifetimeS.most],
    [86_400, 86_400],
    [1, tunnelCertificate.lifetimeS.least],
    [2 ** 31, tunnelCertificate.lifetimeS.most],
    ["86400", tunnelCertificate.lifetimeS.most],
  ])("for %s seconds holds %i", async (expirationSeconds, lifetimeS) => {
    expect(await verdict({ expirationSeconds })).toMatchObject({ t: "granted", lifetimeS });
  });

  test.each<[string, object, string, RegExp]>([
    ["for another signer", { signerName: "kubernetes.io/kubelet-serving" }, "SignerRefused", /another signer/],
    ["that is none", { request: btoa("x") }, "RequestUnreadable", /no PEM/],
    ["that is no base64", { request: "%" }, "RequestUnreadable", /cannot be read/],
    ["without a request", { request: undefined }, "RequestUnreadable", /no PEM/],
    ["of no usage", { usages: [] }, "UsagesRefused", /usages are none/],
    ["of another usage", { usages: ["client auth"] }, "UsagesRefused", /"client auth"/],
    ["of more usages", { usages: [usage, "client auth"] }, "UsagesRefused", /"ipsec tunnel", "client auth"/],
    ["by somebody else", { username: "admin" }, "RequesterRefused", /"admin" asks/],
    ["by nobody", { username: undefined }, "RequesterRefused", /"" asks/],
    [
      "by another account of that name",
      { username: "system:serviceaccount:default:pipette-agent" },
      "RequesterRefused",
      /wanted the agents' account/,
    ],
    ["with a token of no pod", { extra: {} }, "TokenRefused", /of no pod/],
    [
      "with two pods",
      { extra: { ...extra, "authentication.kubernetes.io/pod-name": ["agent-a", "agent-b"] } },
      "TokenRefused",
      /of no pod/,
    ],
    [
      "with a token of another node",
      { extra: { ...extra, "authentication.kubernetes.io/node-name": ["node-b"] } },
      "NodeRefused",
      /token that asks is of node "node-b"/,
    ],
    [
      "of a pod that there was before",
      { extra: { ...extra, "authentication.kubernetes.io/pod-uid": ["uid-0"] } },
      "PodRefused",
      /is gone/,
    ],
    [
      "of a pod that there is not",
      { extra: { ...extra, "authentication.kubernetes.io/pod-name": ["agent-c"] } },
      "PodRefused",
      /is gone/,
    ],
    [
      "of another account's pod",
      {
        extra: {
          "authentication.kubernetes.io/pod-name": ["other"],
          "authentication.kubernetes.io/pod-uid": ["uid-o"],
        },
      },
      "PodRefused",
      /has account "default"/,
    ],
    [
      "of a pod on another node",
      {
        extra: {
          "authentication.kubernetes.io/pod-name": ["agent-b"],
          "authentication.kubernetes.io/pod-uid": ["uid-b"],
        },
      },
      "NodeRefused",
      /is on node "node-b", wanted "node-a"/,
    ],
  ])("%s is refused", async (_, changes, reason, message) => {
    expect(await verdict(changes)).toEqual({ t: "refused", reason, message: expect.stringMatching(message) });
  });

  test.each<[string, readonly string[], string, RegExp]>([
    ["of another organization", named("/O=x/CN=node-a", "DNS:node-a"), "SubjectRefused", /2.5.4.10="x"/],
    ["of no organization", named("/CN=node-a", "DNS:node-a"), "SubjectRefused", /wanted O=pipette.io/],
    ["the other way round", named("/CN=node-a/O=pipette.io", "DNS:node-a"), "SubjectRefused", /and then CN/],
    ["of two nodes", named("/O=pipette.io/CN=node-a/CN=node-b", "DNS:node-a"), "SubjectRefused", /node-b/],
    ["of no name", ["-subj", "/"], "SubjectRefused", /is empty/],
    ["without a DNS name", ["-subj", "/O=pipette.io/CN=node-a"], "NamesRefused", /names are none/],
    ["with another DNS name", named("/O=pipette.io/CN=node-a", "DNS:node-b"), "NamesRefused", /"node-b"/],
    ["with more DNS names", named("/O=pipette.io/CN=node-a", "DNS:node-a,DNS:node-b"), "NamesRefused", /"node-b"/],
    ["with an address", named("/O=pipette.io/CN=node-a", "DNS:node-a,IP:192.0.2.1"), "NamesRefused", /1 of other/],
    ["for an authority", [...rightName, "-addext", "basicConstraints=CA:TRUE"], "ExtensionsRefused", /2.5.29.19/],
    [
      "with a usage of its own",
      [...rightName, "-addext", "extendedKeyUsage=serverAuth"],
      "ExtensionsRefused",
      /2.5.29.37/,
    ],
    ["with a short key", [...rightName, "-newkey", "rsa:1024"], "KeyRefused", /RSA with 1024 bits/],
    [
      "with a key of another kind",
      [...rightName, "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"],
      "KeyRefused",
      /key is ec/,
    ],
    [
      "with a weak exponent",
      [...rightName, "-newkey", "rsa", "-pkeyopt", "rsa_keygen_bits:2048", "-pkeyopt", "rsa_keygen_pubexp:3"],
      "KeyRefused",
      /exponent 3/,
    ],
    ["of another node", named("/O=pipette.io/CN=node-b", "DNS:node-b"), "NodeRefused", /wanted "node-b"/],
  ])("%s is refused", async (_, words, reason, message) => {
    expect(await verdict({ request: await requestBy(...words) })).toEqual({
      ...{ t: "refused", reason },
      message: expect.stringMatching(message),
    });
  });

  test("with a long key is refused", async () => {
    const request = btoa(makeRequest("pipette.io", "node-a", longKey()));
    expect(await verdict({ request })).toMatchObject({
      reason: "KeyRefused",
      message: expect.stringMatching(/RSA with 4484 bits/),
    });
  });

  test("of a node that there is not is refused, and one that cannot be looked at is not", async () => {
    const gone: Facts = { ...facts, hasNode: async () => false };
    expect(await judge({ spec: good }, agents, gone)).toMatchObject({ t: "refused", reason: "NodeUnknown" });
    const away = (): never => {
      throw new Error("the API server is away");
    };
    await expect(judge({ spec: good }, agents, { ...facts, pod: away })).rejects.toThrow("away");
    await expect(judge({ spec: good }, agents, { ...facts, hasNode: away })).rejects.toThrow("away");
  });
});

/** Of two primes that everybody knows (Mersenne's): to look for such large ones takes seconds. */
function longKey(): KeyObject {
  const [p, q, e] = [2n ** 2281n - 1n, 2n ** 2203n - 1n, 65_537n];
  const d = inverse(e, (p - 1n) * (q - 1n));
  const numbers = { n: p * q, e, d, p, q, dp: d % (p - 1n), dq: d % (q - 1n), qi: inverse(q, p) };
  const text = (number: bigint): string => {
    const digits = number.toString(16);
    return Buffer.from(digits.padStart(digits.length + (digits.length % 2), "0"), "hex").toString("base64url");
  };
  const parts = Object.fromEntries(Object.entries(numbers).map(([name, number]) => [name, text(number)]));
  return createPrivateKey({ format: "jwk", key: { kty: "RSA", ...parts } });
}

/** By Euclid. */
function inverse(of: bigint, modulus: bigint): bigint {
  let [before, rest, factor, next] = [modulus, of % modulus, 0n, 1n];
  while (rest > 0n) {
    const times = before / rest;
    [before, rest] = [rest, before - times * rest];
    [factor, next] = [next, factor - times * next];
  }
  return ((factor % modulus) + modulus) % modulus;
}

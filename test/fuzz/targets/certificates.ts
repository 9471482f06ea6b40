import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { wrongPair } from "../../../agent/certificates/pair-check.ts";
import { type Facts, judge } from "../../../controller/signing/judgement.ts";
import { type Issued, issueMember, readRequest, tunnelCertificate } from "../../../shared/certificates/mod.ts";
import type { Target } from "../engine/target.ts";

const marks = { request: "CERTIFICATE REQUEST", certificate: "CERTIFICATE" } as const;

const pemOf = (label: string, bytes: Uint8Array): string =>
  `-----BEGIN ${label}-----\n${bytes.toBase64()}\n-----END ${label}-----\n`;

const facts: Facts = {
  hasNode: async () => true,
  pod: async () => ({ uid: "u", node: "node-a", account: "pipette-agent" }),
};
const agents = { namespace: "ns", account: "pipette-agent" };

const requestOf = (request: string): object => ({
  spec: {
    ...{
      request: new TextEncoder().encode(request).toBase64(),
      signerName: tunnelCertificate.signerName,
      usages: [tunnelCertificate.usage],
    },
    username: "system:serviceaccount:ns:pipette-agent",
    extra: { "authentication.kubernetes.io/pod-name": ["p"], "authentication.kubernetes.io/pod-uid": ["u"] },
  },
});

/** A request is read, or refused in a sentence; what is granted is of that node, and is of the key that signed it. */
async function asRequest(text: string): Promise<void> {
  let isRead = true;
  try {
    readRequest(text);
  } catch (caught) {
    isRead = false;
    if (!(caught instanceof Error) || caught instanceof RangeError || caught.message === "") throw caught;
  }
  const verdict = await judge(requestOf(text) as never, agents, facts);
  if (verdict.t === "refused") return;
  if (!isRead || verdict.node !== "node-a") throw new Error(`It was granted for ${verdict.node}`);
  const { subject, dnsNames, otherNames } = readRequest(text);
  const names = [...subject.map(({ value }) => value), ...dnsNames, ...otherNames];
  if (names.join() !== "pipette.io,node-a,node-a") throw new Error(`It was granted with the names ${names}`);
}

/** A certificate of somebody else's is refused in a sentence, wherever it stands; as an authority it signs, or refuses to. */
function asCertificate(text: string, key: string): void {
  const now = new Date("2026-06-01T00:00:00Z");
  for (const pair of [
    { certificate: text, privateKey: key, ca: text },
    { certificate: text, privateKey: key, ca: "" },
  ])
    if (wrongPair(pair, "node-a", now) === undefined) throw new Error("It was taken for a node's");
  const authority: Issued = { cert: text, key };
  try {
    issueMember({ organization: "o", name: "n", publicKey: createPublicKey(key) }, authority, {
      from: now,
      until: now,
    });
  } catch (caught) {
    if (!(caught instanceof Error) || caught instanceof RangeError || caught.message === "") throw caught;
  }
}

export const certificates: Target = {
  name: "certificates",
  what: "requests for certificates, and certificates, that others make",
  mutators: [],
  dictionary: [
    "node-a",
    "pipette.io",
    "node-b",
    "\u0082\u0006node-a",
    "\u0006\u0003U\u001d\u0011",
    "\u0006\u0003U\u0004\u0003",
  ],
  maxBytes: 4 * 1024,
  open: () => {
    const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const key = String(privateKey.export({ type: "pkcs1", format: "pem" }));
    return {
      run: async (input) => {
        const text = new TextDecoder().decode(input);
        await asRequest(text);
        await asRequest(pemOf(marks.request, input));
        asCertificate(text, key);
        asCertificate(pemOf(marks.certificate, input), key);
      },
    };
  },
};

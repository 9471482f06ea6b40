import { attributeIds, readRequest, type SigningRequest, tunnelCertificate } from "../../shared/certificates/mod.ts";
import { type ApiObject, listIn, mapIn, textIn } from "../../shared/kubernetes/mod.ts";
import { reasonOf } from "../../shared/reason.ts";

/** Why somebody gets no certificate; both stand in a condition of the request. */
export interface Refused {
  readonly t: "refused";
  /** One word, for programs. */
  readonly reason: string;
  readonly message: string;
}

export interface Granted {
  readonly t: "granted";
  readonly node: string;
  readonly publicKey: SigningRequest["publicKey"];
  readonly lifetimeS: number;
}

/** A pod as far as it says who asks. */
export interface AskingPod {
  readonly uid: string;
  readonly node: string;
  readonly account: string;
}

/** What the cluster has. Each throws where that cannot be asked, which is no refusal. */
export interface Facts {
  hasNode(name: string): Promise<boolean>;
  /** Of the agents' namespace. */
  pod(name: string): Promise<AskingPod | undefined>;
}

/** The account of the agents. */
export interface Agents {
  readonly namespace: string;
  readonly account: string;
}

/**
 * Judges a CertificateSigningRequest: only the agent on a node gets a certificate for that node. Whoever may create pods
 * with the agents' account can place one on any node, and so can ask for any.
 * @throws what `facts` throws
 */
export async function judge(request: ApiObject, agents: Agents, facts: Facts): Promise<Granted | Refused> {
  const spec = mapIn(request, "spec");
  if (textIn(spec, "signerName") !== tunnelCertificate.signerName)
    return refused("SignerRefused", `it is for another signer, wanted "${tunnelCertificate.signerName}"`);
  const asked = readAsked(spec);
  if ("t" in asked) return asked;
  const node = nodeIn(asked);
  if (typeof node !== "string") return node;
  return (
    wrongUsages(spec) ??
    wrongKey(asked) ??
    wrongAccount(spec, agents) ??
    (await wrongPlace(spec, node, agents, facts)) ?? {
      ...{ t: "granted", node, publicKey: asked.publicKey },
      lifetimeS: lifetimeIn(spec),
    }
  );
}

const refused = (reason: string, message: string): Refused => ({ t: "refused", reason, message });

/** `"x"`, cut where somebody makes it long. */
const shown = (text: string): string => JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);

function readAsked(spec: ApiObject): SigningRequest | Refused {
  try {
    return readRequest(new TextDecoder().decode(Uint8Array.fromBase64(textIn(spec, "request") ?? "")));
  } catch (caught) {
    return refused("RequestUnreadable", `the request cannot be read: ${reasonOf(caught)}`);
  }
}

/** The node that it names, everywhere in the same way and nothing beside it. */
function nodeIn({ subject, dnsNames, otherNames, otherExtensions }: SigningRequest): string | Refused {
  const [organization, name, ...more] = subject;
  const isShaped =
    more.length === 0 &&
    organization?.id === attributeIds.organization &&
    organization.value === tunnelCertificate.organization &&
    name?.id === attributeIds.commonName;
  if (!isShaped) {
    const is = subject.map(({ id, value }) => `${id}=${shown(value)}`).slice(0, 8);
    return refused(
      "SubjectRefused",
      `its subject is ${is.join(", ") || "empty"}, wanted O=${tunnelCertificate.organization} and then CN=NODE`,
    );
  }
  const node = name.value;
  const isOwn = dnsNames.length === 1 && dnsNames[0] === node && otherNames.length === 0;
  if (!isOwn) {
    const is = `${dnsNames.slice(0, 4).map(shown).join(", ") || "none"}, and ${otherNames.length} of other kinds`;
    return refused("NamesRefused", `its names are ${is}, wanted the DNS name ${shown(node)} alone`);
  }
  const [extension] = otherExtensions;
  if (extension !== undefined) return refused("ExtensionsRefused", `it asks for ${extension}, wanted names alone`);
  return node;
}

function wrongUsages(spec: ApiObject): Refused | undefined {
  const usages = listIn(spec, "usages");
  if (usages.length === 1 && usages[0] === tunnelCertificate.usage) return undefined;
  const is = usages
    .slice(0, 8)
    .map((usage) => shown(String(usage)))
    .join(", ");
  return refused("UsagesRefused", `its usages are ${is || "none"}, wanted "${tunnelCertificate.usage}" alone`);
}

function wrongKey({ publicKey }: SigningRequest): Refused | undefined {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details = {} } = publicKey;
  const { least, most } = tunnelCertificate.keyBits;
  const { modulusLength: bits = 0, publicExponent } = details;
  if (type === "rsa" && bits >= least && bits <= most && publicExponent === 65_537n) return undefined;
  const is = type === "rsa" ? `RSA with ${bits} bits and exponent ${publicExponent}` : `${type}`;
  return refused("KeyRefused", `its key is ${is}, wanted RSA with ${least} to ${most} bits and exponent 65537`);
}

function wrongAccount(spec: ApiObject, { namespace, account }: Agents): Refused | undefined {
  const wanted = `system:serviceaccount:${namespace}:${account}`;
  const is = textIn(spec, "username") ?? "";
  return is === wanted
    ? undefined
    : refused("RequesterRefused", `${shown(is)} asks for it, wanted the agents' account "${wanted}"`);
}

const extraKeys = {
  pod: "authentication.kubernetes.io/pod-name",
  uid: "authentication.kubernetes.io/pod-uid",
  node: "authentication.kubernetes.io/node-name",
} as const;

/** Who asks is the pod that the token was made for, as the API server has written it into the request. */
async function wrongPlace(
  spec: ApiObject,
  node: string,
  { namespace, account }: Agents,
  facts: Facts,
): Promise<Refused | undefined> {
  const extra = mapIn(spec, "extra");
  const one = (key: string): string | undefined => {
    const values = listIn(extra, key);
    return values.length === 1 && typeof values[0] === "string" ? values[0] : undefined;
  };
  const [podName, uid, tokenNode] = [one(extraKeys.pod), one(extraKeys.uid), one(extraKeys.node)];
  if (podName === undefined || uid === undefined)
    return refused("TokenRefused", "the token that asks is of no pod, wanted that of the agent's pod on the node");
  if (tokenNode !== undefined && tokenNode !== node)
    return refused("NodeRefused", `the token that asks is of node ${shown(tokenNode)}, wanted ${shown(node)}`);
  const pod = await facts.pod(podName);
  if (pod === undefined || pod.uid !== uid)
    return refused("PodRefused", `pod ${shown(podName)} in namespace "${namespace}", which asks, is gone`);
  if (pod.account !== account)
    return refused("PodRefused", `pod ${shown(podName)} has account ${shown(pod.account)}, wanted "${account}"`);
  if (pod.node !== node)
    return refused(
      "NodeRefused",
      `pod ${shown(podName)}, which asks, is on node ${shown(pod.node)}, wanted ${shown(node)}`,
    );
  if (!(await facts.hasNode(node))) return refused("NodeUnknown", `there is no node ${shown(node)}`);
  return undefined;
}

function lifetimeIn(spec: ApiObject): number {
  const { least, most } = tunnelCertificate.lifetimeS;
  const asked = spec["expirationSeconds"];
  return typeof asked === "number" ? Math.min(Math.max(asked, least), most) : most;
}

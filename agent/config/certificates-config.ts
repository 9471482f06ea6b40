import { readdirSync } from "node:fs";
import { join } from "node:path";
import { defaulted, type Infer, integer, object, optional, required, variants } from "../../shared/schema/mod.ts";
import { namespaceName, path, url } from "./values.ts";

export const usualTrustDirectory = "/etc/ipsec.d/cacerts";

/** Where strongSwan reads whom to trust, one certificate a file; what the database of Open vSwitch names it never loads. */
const trustDirectory = defaulted(
  path,
  usualTrustDirectory,
  "where strongSwan reads whom to trust, as far as the agent writes it there",
);

const mostHours = 8760;

/** `ovs.ipsec.certificates`. */
export const certificatesSchema = variants("from", "where the node's certificate comes from", {
  files: object({
    certificate: required(
      path,
      "the node's, with its name as CN after another part (`O=…, CN=NODE`) and as DNS name (PEM)",
    ),
    privateKey: required(path, "its key, of RSA, which only root may read (PEM)"),
    authorities: required(path, "the authorities that the nodes' certificates are from (PEM)"),
    trustDirectory,
  }),
  cluster: object({
    namespace: defaulted(namespaceName, "kube-system", "where the controller publishes its authority"),
    server: optional(url('"https://HOST:PORT"', ["https:", "http:"]), "the API server", "what a pod finds"),
    token: optional(path, "a file with the token; it has to be of a pod on this node", "as `server`"),
    ca: optional(path, "the authorities that the API server's certificate is checked with (PEM)", "as `server`"),
    lifetimeHours: defaulted(
      integer(1, mostHours),
      2160,
      "how long a certificate is to hold; it is renewed when 70 to 90 % of that are over",
    ),
    trustDirectory,
  }),
});

export type CertificatesConfig = Infer<typeof certificatesSchema>;
export type GivenCertificatesConfig = Extract<CertificatesConfig, { from: "files" }>;

/** Where the agent keeps certificates and their keys. */
export const certificatesDirectory = (dataDir: string): string => join(dataDir, "ipsec");

/** Files of private keys and tokens: those that are given, and those that the agent keeps. */
export function certificateSecrets(from: CertificatesConfig | undefined, dataDir: string): readonly string[] {
  if (from === undefined) return [];
  const directory = certificatesDirectory(dataDir);
  const kept = entriesOf(directory).flatMap((name) =>
    name === askedKeyFile
      ? [join(directory, name)]
      : entriesOf(join(directory, name)).includes(privateKeyFile)
        ? [join(directory, name, privateKeyFile)]
        : [],
  );
  const given = from.from === "files" ? from.privateKey : from.token;
  return given === undefined ? kept : [given, ...kept];
}

/** Of a pair that is kept. */
export const privateKeyFile = "private-key.pem";
/** The key of a request that is under way, beside the pairs. */
export const askedKeyFile = "asked-key.pem";

function entriesOf(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

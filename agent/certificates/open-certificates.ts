import { ApiClient, serviceAccountAccess } from "../../shared/kubernetes/mod.ts";
import type { Logger } from "../../shared/log.ts";
import { type CertificatesConfig, certificatesDirectory } from "../config/certificates-config.ts";
import { ClusterCertificates } from "./cluster-certificates.ts";
import { FileCertificates } from "./file-certificates.ts";
import type { HeldFiles } from "./held-certificate.ts";
import { PairStore } from "./pair-store.ts";
import { SigningRequests } from "./signing-requests.ts";
import { rereadAuthorities } from "./trusted-authorities.ts";

/** A node's certificate, which may come later and change. */
export interface NodeCertificates extends AsyncDisposable {
  current(): HeldFiles | undefined;
  onChange: (files: HeldFiles | undefined) => void;
  problem(): string | undefined;
}

const secondsPerHour = 3600;

/**
 * Begins at once: where an earlier process has kept a certificate that holds, it is there when this answers.
 * @param dataDir where pairs are kept, below
 * @throws {CniError} code 7 where nothing says where the API server is
 */
export function openCertificates(
  config: CertificatesConfig,
  { node, dataDir, logger, env }: Opening,
): NodeCertificates {
  const directory = certificatesDirectory(dataDir);
  const { trustDirectory } = config;
  const held = { node, store: new PairStore(directory), trustDirectory, reread: rereadAuthorities, logger };
  if (config.from === "files") return new FileCertificates(config, held);
  const { namespace, lifetimeHours } = config;
  const client = new ApiClient(serviceAccountAccess(config, env, "ovs.ipsec.certificates.server"), { env });
  const requests = new SigningRequests(client, { node, namespace, lifetimeS: lifetimeHours * secondsPerHour });
  return new ClusterCertificates(requests, { ...held, directory, close: () => client[Symbol.asyncDispose]() });
}

interface Opening {
  /** The node's name among the others. */
  readonly node: string;
  readonly dataDir: string;
  readonly logger: Logger;
  readonly env: Readonly<Record<string, string | undefined>>;
}

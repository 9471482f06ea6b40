import type { ProgramFor } from "../operator/page/team/mod.ts";
import { ClusterAccess, noTrust } from "../shared/access/mod.ts";
import type { ServerTls } from "../shared/https/mod.ts";
import { ApiClient, type ClusterAccess as ClusterPlace } from "../shared/kubernetes/mod.ts";
import type { Logger } from "../shared/log.ts";
import type { Cidr } from "../shared/net/ip.ts";
import type { ListenAddress } from "../shared/net/listen-address.ts";

/** Where the page for a team is served, and under which names. */
export interface PageOptions {
  readonly listen: ListenAddress;
  /** In lower case, with the port where that is not 443; a forwarded port's loopback names count besides. */
  readonly hosts: readonly string[];
  /** Those who say truly where a request comes from. */
  readonly proxies: readonly Cidr[];
  /** What answers people's questions about policies. */
  readonly programFor: ProgramFor;
}

export interface PageSurroundings {
  readonly cluster: ClusterPlace;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  /** In which the agents are. */
  readonly namespace: string;
  readonly certificates: { readonly serving: Pick<ServerTls, "cert" | "key"> };
}

/** While it is served. */
export interface Page extends AsyncDisposable {
  /** Shows the certificates that there are now to who comes from now on. */
  replaceTls(): void;
}

/**
 * The page, which asks agents as this controller, and shows people what they may see by themselves.
 * @throws {Error} where nobody may listen there
 */
export async function startPage(
  { listen, hosts, proxies, programFor }: PageOptions,
  { cluster, env, logger, namespace, certificates }: PageSurroundings,
): Promise<Page> {
  const { accessAs, ClusterSource, commandsFor, oneAfterTheOther, pageFiles, TeamPage } = await import(
    "../operator/page/team/mod.ts"
  );
  // On a connection and with answers of its own: the controller's watches, and agents who come to it, do not wait for
  // questions that are many, or for tokens that somebody invents.
  const client = new ApiClient(cluster, { env });
  const agents = new ClusterSource(client, namespace);
  const access = new ClusterAccess({ client, logger, trust: () => noTrust, pod: () => undefined });
  const files = await pageFiles();
  const answers = oneAfterTheOther(programFor);
  const page = await TeamPage.start({
    ...{ access, agents, namespace, hosts, proxies, logger, listen, files },
    // Browsers would ask their users for a certificate.
    tls: () => ({ cert: certificates.serving.cert, key: certificates.serving.key }),
    commandsFor: (person, token) => commandsFor(person, accessAs(token, cluster), answers),
  });
  logger.info("the page is served", { port: page.port, hosts });
  return page;
}

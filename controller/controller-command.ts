import type { ProgramFor } from "../operator/page/team/mod.ts";
import { kubeconfigAccess, serviceAccountAccess } from "../shared/kubernetes/mod.ts";
import { createLogger, logLevels } from "../shared/log.ts";
import { type Cidr, parseCidr, parseIp } from "../shared/net/ip.ts";
import { listenRule, parseListen } from "../shared/net/listen-address.ts";
import { type CommandLine, defineCommand, type OptionSpec } from "../shared/terminal/command.ts";
import { exitStatus } from "../shared/terminal/exit-status.ts";
import type { TerminalIo } from "../shared/terminal/terminal-io.ts";
import type { ControllerOptions } from "./controller.ts";

/** The port of Antrea's controller, which its agents and firewalls know. */
const defaultPort = 10_349;
const defaultNamespace = "kube-system";
const ownName = "pipette-controller";
const pageService = "pipette-page";
const defaultAccount = "pipette-agent";

const listenOption = {
  wrong: (text: string) => (parseListen(text) === undefined ? `"${text}"` : undefined),
  wanted: listenRule,
};

const options = {
  listen: { value: "ADDRESS:PORT", rule: listenOption, help: `where it serves (default [::]:${defaultPort})` },
  advertise: {
    value: "ADDRESS",
    rule: {
      wrong: (text: string) => (parseIp(text) === undefined ? "none" : undefined),
      wanted: "an address of IPv4 or IPv6",
    },
    help: "where other controllers reach it: of several with this, one keeps what all nodes report, by a Lease",
  },
  kubeconfig: {
    value: "FILE",
    of: "file",
    help: "the API server and who we are there (default: the pod's own account)",
  },
  certificates: {
    value: "DIR",
    of: "file",
    help: "tls.crt, tls.key and ca.crt to serve with; without it they are made, and kept in a Secret",
  },
  namespace: { value: "NAME", help: `where its Service, Secret and ConfigMap are (default ${defaultNamespace})` },
  name: {
    value: "NAME",
    help: "a DNS name or an address under which clients reach it, besides its Service's",
    repeats: true,
  },
  "as-antrea": { help: "also found as Antrea's controller is: Service antrea, ConfigMap antrea-ca" },
  "watch-nodes": {
    help: "watches what agents tell of their nodes (clusterState of agent.yaml): calls those that are silent unknown",
  },
  page: {
    value: "ADDRESS:PORT",
    rule: listenOption,
    help: "serves the page for a team there, over HTTPS: who signs in sees what they may see (default: it is not served)",
  },
  "page-host": {
    value: "NAME",
    rule: {
      wrong: (text: string) => (/^[a-z0-9][-a-z0-9.]*(:\d{1,5})?$/.test(text) ? undefined : `"${text}"`),
      wanted: "a DNS name in lower case, with :PORT where that is not 443",
    },
    help: "under which browsers reach the page, such as that of an Ingress (default: only a forwarded port's localhost)",
    repeats: true,
  },
  "page-proxy": {
    value: "NETWORK",
    rule: {
      wrong: (text: string) => (parseCidr(text) === undefined ? `"${text}"` : undefined),
      wanted: "a network such as 10.0.0.0/8",
    },
    help: "where proxies before the page are, whose word counts for where a request comes from",
    repeats: true,
  },
  "sign-ipsec": { help: "signs nodes' certificates for IPsec between them (ovs.ipsec of agent.yaml)" },
  "ipsec-ca": {
    value: "DIR",
    of: "file",
    help: "ca.crt and ca.key to sign these with; without it they are made, and kept in a Secret",
  },
  "agent-account": {
    value: "NAME",
    help: `the agents' service account, which alone gets one (default ${defaultAccount})`,
  },
  "data-dir": {
    value: "DIR",
    of: "file",
    help: "keeps there what it knows, so that it serves at once when it starts anew, marked as old",
  },
  "log-level": { value: "LEVEL", of: logLevels, help: "least level of what is logged (default info)" },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** @param programFor answers questions about policies to people who have signed in to the page */
export const controllerCommand = (programFor: ProgramFor) =>
  defineCommand({
    action: "run the controller",
    about: `Computes the cluster's network policies and serves each node's agent its part of them over HTTPS, until SIGTERM or
SIGINT, with its log as JSON lines on stderr. Any number of them may run at once: all come to the same.`,
    options,
    exits: { 0: "stopped as asked" },
    run: ({ options: given }, io) => runController(given, io, programFor),
  });

type Given = CommandLine<typeof options>["options"];

async function runController(given: Given, io: TerminalIo, programFor: ProgramFor): Promise<number> {
  const { kubeconfig: file, namespace = defaultNamespace, name: names = [] } = given;
  const cluster =
    file === undefined
      ? serviceAccountAccess({}, io.env, "--kubeconfig")
      : await kubeconfigAccess({ env: io.env, file });
  const services = [ownName, ...(given["as-antrea"] ? ["antrea"] : [])];
  const certificates: ControllerOptions["certificates"] =
    given.certificates === undefined
      ? {
          t: "kept",
          secret: `${ownName}-tls`,
          names: [
            ...services.flatMap((service) => [`${service}.${namespace}.svc`, service]),
            ...["localhost", ...names, ...pageNames(given, namespace)],
          ],
        }
      : { t: "given", directory: given.certificates };
  const publishedIn = {
    namespace,
    configMaps: services.map((service) => `${service}-ca`),
    apiServices: ["v1beta2.controlplane.antrea.io", "v1.controlplane.pipette.io"],
  };
  const listen = parseListen(given.listen ?? `[::]:${defaultPort}`);
  if (listen === undefined) return exitStatus.wrongArguments;
  const { "data-dir": dataDir, advertise, "ipsec-ca": authority, "agent-account": account = defaultAccount } = given;
  const page = pageOf(given, programFor);
  const asked: ControllerOptions = {
    ...{ cluster, env: io.env, listen, certificates, publishedIn, watchesNodes: given["watch-nodes"] },
    ...(given["sign-ipsec"] ? { signs: { account, ...(authority === undefined ? {} : { authority }) } } : {}),
    ...(dataDir === undefined ? {} : { dataDir }),
    ...(advertise === undefined ? {} : { advertise }),
    ...(page === undefined ? {} : { page }),
  };
  const { openSystem } = await import("../shared/server/open-system.ts");
  const { runDaemon } = await import("../shared/server/daemon.ts");
  const { Controller } = await import("./controller.ts");
  const level = logLevels.find((each) => each === given["log-level"]) ?? "info";
  const logger = createLogger(level, (line) => io.stderr(`${line}\n`));
  const context = { who: "the controller", logger, system: await openSystem(), env: io.env };
  // Where the API server does not answer, starting goes on until it is asked to stop.
  const stopping = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"])
    process.once(signal, () => stopping.abort(new Error(`${signal} came before there was anything to serve with`)));
  return runDaemon(context, () => Controller.start(asked, logger, stopping.signal));
}

interface PageLine {
  readonly page: string | undefined;
  readonly "page-host": readonly string[];
  readonly "page-proxy": readonly string[];
}

function pageOf(
  { page, "page-host": hosts, "page-proxy": proxies }: PageLine,
  programFor: ProgramFor,
): ControllerOptions["page"] {
  const listen = page === undefined ? undefined : parseListen(page);
  if (listen === undefined) return undefined;
  return {
    listen,
    hosts,
    programFor,
    proxies: proxies.map(parseCidr).filter((cidr): cidr is Cidr => cidr !== undefined),
  };
}

/** For the certificate. */
const pageNames = ({ page, "page-host": hosts }: PageLine, namespace: string): readonly string[] =>
  page === undefined
    ? []
    : [pageService, `${pageService}.${namespace}.svc`, ...hosts.map((host) => host.split(":")[0] ?? "")];

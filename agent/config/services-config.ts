import {
  boolean,
  defaulted,
  type Findings,
  type Infer,
  list,
  object,
  oneOf,
  optional,
} from "../../shared/schema/mod.ts";
import { checkFamilies, type RegistryConfig } from "./nodes-config.ts";
import { defaultServiceCidr, type WrittenOvs } from "./ovs-config.ts";
import { block, parseBlock, path, url } from "./values.ts";

/** `services` of `agent.yaml`. */
export const servicesSchema = object({
  from: defaulted(oneOf(["cluster", "file"]), "cluster", "who tells them: the API server of Kubernetes, or `file`"),
  file: optional(path, "a file of [services](#services), for `from: file`", "none"),
  server: optional(
    url('"https://HOST:PORT"', ["https:", "http:"]),
    "the API server, by an address that needs no service",
    "that of a registry of type `kubernetes`; else what a pod finds",
  ),
  token: optional(path, "a file with the token", "as `server`"),
  ca: optional(path, "the authorities that the server's certificate is checked with (PEM)", "as `server`"),
  cidrs: optional(
    list(block(defaultServiceCidr), 0, 2),
    "where cluster IPs are from, one block per family at most",
    `what \`ovs.services.cidrs\` says; \`${defaultServiceCidr}\``,
  ),
  proxyAll: defaulted(
    boolean,
    true,
    "whether also what the node itself and others send is balanced, and node ports, external IPs and those of load balancers; `false`: cluster IPs for pods alone",
  ),
  nodePortAddresses: defaulted(
    list(block("192.168.0.0/16"), 0, 64),
    [],
    "blocks of those of the node's addresses at which node ports answer",
    "all but loopback",
  ),
});

type WrittenServices = Infer<typeof servicesSchema>;

/** Services that the data path balances. */
export interface ServicesConfig extends WrittenServices {
  readonly cidrs: NonNullable<WrittenServices["cidrs"]>;
}

interface Around {
  /** Where it is used. */
  readonly ovs: WrittenOvs | undefined;
  readonly registry: RegistryConfig | undefined;
}

const usualCidrs = [parseBlock(defaultServiceCidr)].filter((cidr) => cidr !== undefined);

/** Fills in what depends on other sections. A file in `ovs.services`, the older spelling, means cluster IPs for pods. */
export function toServices(
  written: WrittenServices | undefined,
  { ovs, registry }: Around,
): ServicesConfig | undefined {
  const cidrs = ovs?.services.cidrs ?? usualCidrs;
  const file = ovs?.services.file;
  if (written === undefined)
    return file === undefined ? undefined : { from: "file", file, cidrs, proxyAll: false, nodePortAddresses: [] };
  const { type: _, ...access } = registry?.type === "kubernetes" ? registry : { type: "none" };
  return { ...access, ...written, cidrs: written.cidrs ?? cidrs };
}

/** Finds contradictions between keys. */
export function checkServices(
  { from, file, cidrs = [] }: WrittenServices,
  { ovs }: Pick<Around, "ovs">,
  findings: Findings,
): void {
  const at = ["services"];
  if (from === "file" && file === undefined) findings.add(at, 'without "file", wanted it where "from" is "file"');
  if (from !== "file" && file !== undefined)
    findings.add([...at, "file"], `there while "from" is "${from}", wanted "from: file" or no "file"`);
  if (ovs?.services.file !== undefined)
    findings.add(["ovs", "services", "file"], 'there beside the section "services", wanted one of both');
  checkFamilies([...at, "cidrs"], cidrs, findings);
}

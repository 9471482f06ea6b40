import { defaulted, type Infer, integer, object, oneOf, optional, textThat } from "../../shared/schema/mod.ts";
import { isNodeName, path, url } from "./values.ts";

/** The longest that is of use: half of the time that a plugin waits for its ADD. */
const longestWaitMs = 15_000;

const loggedVerdicts = ["off", "refused", "all"] as const;
/** Of which verdicts people are told: `all` are refusals and each connection that a rule has let through. */
export type LoggedVerdicts = (typeof loggedVerdicts)[number];

const dnsName = textThat("a DNS name", isNodeName);

/** `policies` of `agent.yaml`. */
export const policiesSchema = object({
  controller: optional(
    url('"https://HOST:PORT"', ["https:", "http:"]),
    "the controller",
    "any that is ready behind the Service `pipette-controller`",
  ),
  namespace: defaulted(
    dnsName,
    "kube-system",
    "where the controller's Service and ConfigMap are, unless both are given here",
  ),
  serverName: optional(
    dnsName,
    "the name that the controller's certificate has to be for",
    "`pipette-controller.NAMESPACE.svc`",
  ),
  token: optional(path, "a file with the token, read again for each request", "what a pod finds"),
  ca: optional(
    path,
    "the authorities that the controller's certificate is checked with (PEM), read again for each request",
    "those in the ConfigMap `pipette-controller-ca`",
  ),
  waitMs: defaulted(
    integer(0, longestWaitMs),
    5000,
    "how long an ADD waits until the policies of its pod are in force; a pod that starts before is isolated until then",
  ),
  log: defaulted(
    oneOf(loggedVerdicts),
    "off",
    "what is written to `policies.log` in `dataDir`: nothing, refused packets, or also each connection that a rule allows",
  ),
});

export type PoliciesConfig = Infer<typeof policiesSchema>;

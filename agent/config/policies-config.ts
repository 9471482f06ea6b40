import { defaulted, type Infer, integer, object, optional, textThat } from "../../shared/schema/mod.ts";
import { isNodeName, path, url } from "./values.ts";

/** The longest that is of use: half of the time that a plugin waits for its ADD. */
const longestWaitMs = 15_000;

const serverName = textThat("a DNS name", isNodeName);

/** `policies` of `agent.yaml`. */
export const policiesSchema = object({
  controller: optional(
    url('"https://HOST:PORT"', ["https:", "http:"]),
    "the controller",
    "any that is ready behind the Service `pipette-controller` of `kube-system`",
  ),
  serverName: defaulted(
    serverName,
    "pipette-controller.kube-system.svc",
    "the name that the controller's certificate has to be for",
  ),
  token: optional(path, "a file with the token, read again for each request", "what a pod finds"),
  ca: optional(
    path,
    "the authorities that the controller's certificate is checked with (PEM), read again for each request",
    "those in the ConfigMap `pipette-controller-ca` of `kube-system`",
  ),
  waitMs: defaulted(
    integer(0, longestWaitMs),
    5000,
    "how long an ADD waits until the policies of its pod are in force; a pod that starts before is isolated until then",
  ),
});

export type PoliciesConfig = Infer<typeof policiesSchema>;

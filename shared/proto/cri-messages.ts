import { unary } from "./services.ts";
import { type Field, flag, int32, message, nested, repeated, text } from "./wire.ts";

/**
 * The part of Kubernetes' Container Runtime Interface (`runtime.v1`) that tells of pods' sandboxes; names and numbers are
 * the interface's. Nothing is asked of a runtime that changes it.
 */

/** A time in nanoseconds since 1970, which a number cannot hold, as milliseconds. It is only read. */
const nanoseconds = (number: number): Field<number> => ({
  number,
  wireType: 0,
  absent: () => 0,
  write: () => undefined,
  read: (input) => {
    input.varint();
    return Math.floor(((input.high | 0) * 4294967296 + (input.low >>> 0)) / 1e6);
  },
});

/** An entry of a map from text to text. */
const Entry = message({ key: text(1), value: text(2) });

const StatusRequest = message({});
const RuntimeCondition = message({ type: text(1), status: flag(2), reason: text(3), message: text(4) });
const RuntimeStatus = message({ conditions: repeated(1, RuntimeCondition) });
const StatusResponse = message({ status: nested(1, RuntimeStatus) });

const ListPodSandboxRequest = message({});
const PodSandboxMetadata = message({ name: text(1), uid: text(2), namespace: text(3) });
const PodSandbox = message({
  id: text(1),
  metadata: nested(2, PodSandboxMetadata),
  state: int32(3),
  createdAtMs: nanoseconds(4),
});
const ListPodSandboxResponse = message({ items: repeated(1, PodSandbox) });

const PodSandboxStatusRequest = message({ podSandboxId: text(1), verbose: flag(2) });
const PodIP = message({ ip: text(1) });
const PodSandboxNetworkStatus = message({ ip: text(1), additionalIps: repeated(2, PodIP) });
const PodSandboxStatus = message({ id: text(1), network: nested(5, PodSandboxNetworkStatus) });
const PodSandboxStatusResponse = message({ status: nested(1, PodSandboxStatus), info: repeated(2, Entry) });

/** Of a sandbox: it runs. */
export const sandboxReady = 0;

export const runtimeService = {
  status: unary("/runtime.v1.RuntimeService/Status", StatusRequest, StatusResponse),
  listPodSandbox: unary("/runtime.v1.RuntimeService/ListPodSandbox", ListPodSandboxRequest, ListPodSandboxResponse),
  podSandboxStatus: unary(
    "/runtime.v1.RuntimeService/PodSandboxStatus",
    PodSandboxStatusRequest,
    PodSandboxStatusResponse,
  ),
} as const;

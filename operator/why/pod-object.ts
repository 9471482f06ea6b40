import {
  type ApiClient,
  ApiError,
  type ApiObject,
  listIn,
  mapIn,
  mapsIn,
  textIn,
} from "../../shared/kubernetes/mod.ts";
import type { PodName, PodState, Statement } from "./facts.ts";
import { podText } from "./facts.ts";

/** Events of one pod: the API server keeps them for an hour, and counts those alike. */
const maxEvents = 100;

/** Kinds of events that tell of the network; those of images and probes do not. */
const ofNetwork = new Set(["FailedCreatePodSandBox", "NetworkNotReady", "FailedKillPod", "SandboxChanged"]);

/** @throws {ApiError} */
export async function podState(client: ApiClient, pod: PodName, signal: AbortSignal): Promise<PodState | "absent"> {
  const path = `/api/v1/namespaces/${encodeURIComponent(pod.namespace)}/pods/${encodeURIComponent(pod.name)}`;
  try {
    return stateOf(await client.get({ path, action: `get pod "${podText(pod)}"`, signal }));
  } catch (caught) {
    if (caught instanceof ApiError && caught.status === 404) return "absent";
    throw caught;
  }
}

function stateOf(object: ApiObject): PodState {
  const [metadata, spec, status] = [mapIn(object, "metadata"), mapIn(object, "spec"), mapIn(object, "status")];
  const node = textIn(spec ?? {}, "nodeName");
  const scheduled = mapsIn(status ?? {}, "conditions").find(({ type }) => type === "PodScheduled");
  const unscheduled = scheduled?.["status"] === "True" ? undefined : textIn(scheduled ?? {}, "message");
  const ips = mapsIn(status ?? {}, "podIPs").flatMap((one) => textIn(one, "ip") ?? []);
  return {
    uid: textIn(metadata ?? {}, "uid") ?? "",
    phase: textIn(status ?? {}, "phase") ?? "Unknown",
    hostNetwork: spec?.["hostNetwork"] === true,
    isLeaving: textIn(metadata ?? {}, "deletionTimestamp") !== undefined,
    addresses: ips,
    ...(node === undefined || node === "" ? {} : { node }),
    ...(unscheduled === undefined ? {} : { unscheduled }),
  };
}

/** What was said of its network, the latest first. @throws {ApiError} */
export async function podEvents(client: ApiClient, pod: PodName, signal: AbortSignal): Promise<readonly Statement[]> {
  const selector = encodeURIComponent(`involvedObject.kind=Pod,involvedObject.name=${pod.name}`);
  const path = `/api/v1/namespaces/${encodeURIComponent(pod.namespace)}/events?limit=${maxEvents}&fieldSelector=${selector}`;
  const list = await client.get({ path, action: `list the events of pod "${podText(pod)}"`, signal });
  return listIn(list, "items")
    .flatMap((item) => eventOf(item as ApiObject))
    .toSorted((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0));
}

function eventOf(event: ApiObject): readonly Statement[] {
  const reason = textIn(event, "reason") ?? "";
  const message = textIn(event, "message") ?? "";
  const component = textIn(mapIn(event, "source") ?? {}, "component") ?? "";
  if (!(ofNetwork.has(reason) || component.startsWith("pipette"))) return [];
  if (message === "" || textIn(event, "type") !== "Warning") return [];
  const last = textIn(event, "lastTimestamp") ?? textIn(event, "eventTime") ?? textIn(event, "firstTimestamp") ?? "";
  const atMs = Date.parse(last);
  const times = event["count"];
  return [
    {
      by: "event",
      from: `the pod's event ${reason}`,
      text: message,
      isOfPod: true,
      ...(Number.isNaN(atMs) ? {} : { atMs }),
      ...(typeof times === "number" ? { times } : {}),
    },
  ];
}

import { existsSync } from "node:fs";
import type { PodName, RuntimeSays } from "../../../operator/mod.ts";
import { RpcChannel } from "../../../shared/channel/rpc-channel.ts";
import { isWindows } from "../../../shared/os/platform.ts";
import { runtimeService, sandboxReady } from "../../../shared/proto/cri-messages.ts";
import { GrpcCode, RpcError } from "../../../shared/rpc/rpc-error.ts";
import { parseJson } from "../../../shared/schema/json.ts";
import { isObject } from "../../../shared/schema/json-fields.ts";

/** Where runtimes listen by default: containerd, CRI-O, k3s, cri-dockerd. */
const usual = isWindows
  ? ["\\\\.\\pipe\\containerd-containerd"]
  : [
      "/run/containerd/containerd.sock",
      "/run/crio/crio.sock",
      "/run/k3s/containerd/containerd.sock",
      "/run/cri-dockerd.sock",
    ];
const answerMs = 4_000;
/** Sandboxes of one pod that are looked at, the latest first: one that fails again and again leaves some. */
const maxSandboxes = 4;

/** `unix:///run/…` and `npipe:////./pipe/…`, as crictl and the kubelet have them, or a plain path. */
export function socketOf(text: string): string {
  if (text.startsWith("unix://")) return text.slice("unix://".length);
  if (text.startsWith("npipe://")) return text.slice("npipe://".length).replaceAll("/", "\\");
  return text;
}

/**
 * What the container runtime of this node says of a pod's sandboxes and of its network, by its own interface (CRI).
 * @param named its socket; absent: the first of the usual ones
 * @throws {Error} in a sentence: there is none, or it does not answer
 */
export async function askRuntime(
  named: string | undefined,
  pod: PodName | undefined,
  signal: AbortSignal,
): Promise<RuntimeSays> {
  const socket = named === undefined ? usual.find((path) => isWindows || existsSync(path)) : socketOf(named);
  if (socket === undefined) throw new Error(`no runtime listens at ${usual.join(", ")}, wanted --runtime SOCKET`);
  using runtime = new RpcChannel(socket);
  const options = { timeoutMs: answerMs, signal };
  try {
    const { status } = await runtime.unary(runtimeService.status, {}, options);
    const network = status?.conditions.find(({ type }) => type === "NetworkReady");
    const all = pod === undefined ? [] : (await runtime.unary(runtimeService.listPodSandbox, {}, options)).items;
    const own = all
      .filter(({ metadata }) => metadata?.name === pod?.name && metadata?.namespace === pod?.namespace)
      .toSorted((a, b) => b.createdAtMs - a.createdAtMs)
      .slice(0, maxSandboxes);
    const sandboxes = own.map(async ({ id, state, createdAtMs }) => {
      const request = { podSandboxId: id, verbose: true };
      const { status: one, info } = await runtime.unary(runtimeService.podSandboxStatus, request, options);
      const netns = netnsIn(info.find(({ key }) => key === "info")?.value ?? "");
      const addresses = [one?.network?.ip ?? "", ...(one?.network?.additionalIps ?? []).map(({ ip }) => ip)];
      return {
        ...{ id, isReady: state === sandboxReady, createdAtMs },
        addresses: addresses.filter((address) => address !== ""),
        ...(netns === "" ? {} : { netns, isNetnsThere: existsSync(netns) }),
      };
    });
    return {
      socket,
      ...(network === undefined ? {} : { network: { isReady: network.status, message: network.message } }),
      sandboxes: await Promise.all(sandboxes),
    };
  } catch (caught) {
    throw caught instanceof RpcError ? new Error(sentenceOf(caught, socket), { cause: caught }) : caught;
  }
}

/** Of what containerd and CRI-O say about a sandbox's process. Their own format, so nothing is relied upon. */
function netnsIn(info: string): string {
  let value: unknown;
  try {
    value = parseJson(info);
  } catch {
    return "";
  }
  const at = (of: unknown, key: string): unknown => (isObject(of) ? of[key] : undefined);
  const namespaces = at(at(at(value, "runtimeSpec"), "linux"), "namespaces");
  const network = Array.isArray(namespaces) ? namespaces.find((one) => at(one, "type") === "network") : undefined;
  const path = at(network, "path");
  return typeof path === "string" ? path : "";
}

function sentenceOf({ grpcCode, unreachable, message }: RpcError, socket: string): string {
  if (grpcCode === GrpcCode.permissionDenied) return `only root may ask it at "${socket}"`;
  if (unreachable) return `nobody serves "${socket}"`;
  if (grpcCode === GrpcCode.deadlineExceeded) return `there is no answer at "${socket}" after ${answerMs} ms`;
  if (grpcCode === GrpcCode.unimplemented) return `who serves "${socket}" is no runtime that speaks CRI (runtime.v1)`;
  return message;
}

import { type Manifest, object, plainObjects } from "../manifests/manifest.ts";
import { namespaceOptions } from "./cri-client.ts";
import { busyboxImage } from "./images.ts";

/** Of a DaemonSet for Linux, what a kubelet makes a pod and its containers of. */
export interface ManifestPod {
  readonly hostNetwork?: boolean;
  readonly hostPID?: boolean;
  readonly initContainers: readonly ManifestContainer[];
  readonly containers: readonly ManifestContainer[];
  readonly volumes: readonly {
    readonly name: string;
    readonly hostPath?: { readonly path: string; readonly type?: string };
    readonly configMap?: { readonly name: string };
  }[];
  readonly terminationGracePeriodSeconds: number;
}

export interface ManifestContainer {
  readonly name: string;
  readonly image: string;
  readonly command: readonly string[];
  readonly env?: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: { readonly fieldRef: { readonly fieldPath: string } };
  }[];
  readonly securityContext: {
    readonly runAsUser: number;
    readonly privileged?: boolean;
    readonly allowPrivilegeEscalation?: boolean;
    readonly readOnlyRootFilesystem?: boolean;
    readonly seccompProfile?: { readonly type: "RuntimeDefault" | "Unconfined" };
    readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  };
  readonly volumeMounts: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
    readonly mountPropagation?: "HostToContainer";
  }[];
}

/** What such a DaemonSet makes pods of. */
export const podOf = (objects: readonly Manifest[], name: string): ManifestPod =>
  object(objects, "DaemonSet", name)["spec"].template.spec;

/** Of the plain files. */
export const daemonPod = (file: string, name: string): ManifestPod => podOf(plainObjects(file), name);

/** What the kubelet of the tests says of its pods by the downward API. */
const downward: Readonly<Record<string, string>> = { "spec.nodeName": "node-1", "status.hostIP": "192.0.2.1" };

/** Where a volume is on the node; what the kubelet makes is among its own. */
export const volumePath = ({ name, hostPath, configMap }: ManifestPod["volumes"][number]): string =>
  hostPath?.path ?? `/etc/kubelet-volumes/${configMap?.name ?? name}`;

/** What a kubelet tells the runtime to hide and to protect where `procMount` is the default. */
const masked = ["asound", "acpi", "kcore", "keys", "latency_stats", "timer_list", "timer_stats", "sched_debug", "scsi"];
const readOnly = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

export interface Placed {
  /** Where a path of the host is on this node. */
  hostPath(path: string): string;
  /** What stands for the image, directories of the machine mounted read-only; absent: the image that the manifest names. */
  readonly standIn?: readonly { readonly container_path: string; readonly host_path: string }[];
}

/** A ContainerConfig of the Container Runtime Interface, as the kubelet makes it of the manifest. */
export function containerConfig(pod: ManifestPod, container: ManifestContainer, attempt: number, placed: Placed) {
  const { securityContext: context } = container;
  const paths = new Map(pod.volumes.map((volume) => [volume.name, volumePath(volume)]));
  const mounts = container.volumeMounts.map(({ name, mountPath, readOnly: isReadOnly = false, mountPropagation }) => ({
    container_path: mountPath,
    host_path: placed.hostPath(paths.get(name) ?? ""),
    readonly: isReadOnly,
    propagation: mountPropagation === "HostToContainer" ? "PROPAGATION_HOST_TO_CONTAINER" : "PROPAGATION_PRIVATE",
  }));
  const privileged = context.privileged === true;
  return {
    metadata: { name: container.name, attempt },
    image: { image: placed.standIn === undefined ? container.image : busyboxImage },
    command: container.command,
    envs: [
      ...(placed.standIn === undefined ? [] : [{ key: "PATH", value: "/usr/sbin:/usr/bin" }]),
      ...(container.env ?? []).map(({ name, value, valueFrom }) => ({
        key: name,
        value: value ?? downward[valueFrom?.fieldRef.fieldPath ?? ""],
      })),
    ],
    mounts: [...(placed.standIn ?? []).map((mount) => ({ ...mount, readonly: true })), ...mounts],
    log_path: `${container.name}-${attempt}.log`,
    linux: {
      security_context: {
        privileged,
        namespace_options: namespaceOptions(pod.hostNetwork),
        run_as_user: { value: context.runAsUser },
        readonly_rootfs: context.readOnlyRootFilesystem === true,
        no_new_privs: context.allowPrivilegeEscalation === false,
        capabilities: {
          add_capabilities: context.capabilities?.add ?? [],
          drop_capabilities: context.capabilities?.drop ?? [],
        },
        masked_paths: privileged ? [] : [...masked.map((name) => `/proc/${name}`), "/sys/firmware"],
        readonly_paths: privileged ? [] : readOnly.map((name) => `/proc/${name}`),
        // Where a manifest says nothing, neither does a kubelet.
        seccomp: { profile_type: context.seccompProfile?.type ?? "Unconfined" },
      },
    },
  };
}

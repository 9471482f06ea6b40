import { accessSync, constants } from "node:fs";
import { describe, test } from "vitest";
import { findHelm } from "../../build/helm.ts";
import { isWindows } from "../../shared/os/platform.ts";
import { whyNoAntrea, whyNoKubernetes } from "../kubernetes/assets.ts";
import { whyNoSchemas } from "../manifests/schemas.ts";
import { whyNoEarlierRelease } from "../upgrade/earlier-release.ts";

/** What a system test may need of the machine, and the sentence for its absence. */
const needs = {
  linux: () => (isWindows ? "it is about sockets and namespaces of Linux" : undefined),
  root: () => (process.getuid?.() === 0 ? undefined : "it is not run as root"),
  "cni-plugins": () => missingFile("/usr/lib/cni/host-local", "containernetworking-plugins"),
  containerd: () => missingFile("/usr/bin/containerd", "containerd"),
  podman: () => missingFile("/usr/bin/podman", "podman"),
  go: () => missingFile("/usr/bin/go", "golang-go"),
  "go-grpc": () => missingFile("/usr/share/gocode/src/google.golang.org/grpc", "golang-google-grpc-dev"),
  "go-protobuf": () => missingFile("/usr/bin/protoc-gen-go", "golang-goprotobuf-dev"),
  protoc: () => missingFile("/usr/bin/protoc", "protobuf-compiler"),
  "proto-files": () => missingFile("/usr/include/google/protobuf/any.proto", "libprotobuf-dev"),
  gcc: () => missingFile("/usr/bin/gcc", "gcc"),
  clang: () => missingFile("/usr/bin/clang-14", "clang-14, and libclang-rt-14-dev for its libFuzzer"),
  musl: () => missingFile("/usr/bin/musl-gcc", "musl-tools"),
  busybox: () => missingFile("/usr/bin/busybox", "busybox-static"),
  strace: () => missingFile("/usr/bin/strace", "strace"),
  bash: () => missingFile("/usr/bin/bash", "bash"),
  zsh: () => missingFile("/usr/bin/zsh", "zsh"),
  wine: () => missingFile("/usr/lib/wine/wine64", "wine64"),
  mingw: () => missingFile("/usr/bin/x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"),
  openvswitch: () => missingFile("/usr/sbin/ovs-vswitchd", "openvswitch-switch"),
  chromium: () => missingFile("/usr/bin/chromium", "chromium"),
  "wireguard-go": () => missingFile("/usr/bin/wireguard-go", "wireguard-go"),
  strongswan: () => missingFile("/usr/lib/ipsec/starter", "strongswan"),
  "kernel-libipsec": () =>
    missingFile("/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so", "libcharon-extra-plugins"),
  "ovs-monitor-ipsec": () => missingFile("/usr/share/openvswitch/scripts/ovs-monitor-ipsec", "openvswitch-ipsec"),
  tun: () => missingFile("/dev/net/tun", "none: a kernel with TUN"),
  openssl: () => missingFile("/usr/bin/openssl", "openssl"),
  etcd: () => missingFile("/usr/bin/etcd", "etcd-server"),
  etcdctl: () => missingFile("/usr/bin/etcdctl", "etcd-client"),
  systemd: () => missingFile("/lib/systemd/systemd", "systemd"),
  skopeo: () => missingFile("/usr/bin/skopeo", "skopeo"),
  hivex: () => missingFile("/usr/bin/hivexml", "libhivex-bin"),
  promtool: () => missingFile("/usr/bin/promtool", "prometheus"),
  nft: () => missingFile("/usr/sbin/nft", "nftables"),
  helm: () =>
    findHelm() === undefined
      ? 'there is no helm, neither on the PATH nor named by the variable "HELM", nor built by "npm run test:kubernetes"'
      : undefined,
  "kubernetes-validate": whyNoSchemas,
  "earlier-release": () => whyNoEarlierRelease(),
  "kube-apiserver": () => whyNoKubernetes("kube-apiserver"),
  "kube-controller-manager": () => whyNoKubernetes("kube-controller-manager"),
  kubectl: () => whyNoKubernetes("kubectl"),
  // Built together, with all that a cluster needs.
  kubelet: () => whyNoKubernetes("kubelet"),
  "antrea-controller": whyNoAntrea,
  // The nodes of the tests see control groups of their own, as the first version has them.
  "cgroup-v1": () =>
    missingFile("/sys/fs/cgroup/memory", "none: a kernel that is started with control groups of version 1"),
} as const;

export type Need = keyof typeof needs;

function missingFile(path: string, debianPackage: string): string | undefined {
  try {
    accessSync(path, constants.R_OK);
    return undefined;
  } catch {
    return `"${path}" is missing (Debian package ${debianPackage})`;
  }
}

/** Why a test with these needs cannot run here; `undefined` where it can. */
export function whyNot(...wanted: readonly Need[]): string | undefined {
  for (const need of wanted) {
    const reason = needs[need]();
    if (reason !== undefined) return reason;
  }
  return undefined;
}

/**
 * A group of tests that needs something of the machine. Where that is missing the group counts as
 * one skipped test, which the run lists at its end with the reason.
 */
export function describeWith(name: string, wanted: readonly Need[], body: () => void): void {
  const reason = whyNot(...wanted);
  if (reason === undefined) {
    describe(name, body);
    return;
  }
  describe(name, () => {
    test("cannot run on this machine", (context) => context.skip(reason));
  });
}

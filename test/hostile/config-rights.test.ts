import { chmodSync, chownSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { compileExecutables, executables } from "../conformance/plugin.ts";
import { AgentHome } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { stranger } from "./planted.ts";

const ownNetwork = ["unshare", "--net"];

/** Starts an agent whose configuration lies in a directory of its own, as `/etc/pipette` is. @returns its last word */
async function startAfter(
  changes: (home: AgentHome) => Readonly<Record<string, unknown>>,
  change: (directory: string) => void,
  prefix = (_: string): readonly string[] => ownNetwork,
): Promise<string> {
  // A first one tells where the second one's directory is.
  await using home = new AgentHome({}, executables);
  const directory = join(home.directory, "etc");
  mkdirSync(directory, { mode: 0o755 });
  await using agent = new AgentHome(changes(home), executables, prefix(directory), directory);
  const file = join(directory, "agent.yaml");
  renameSync(agent.configFile, file);
  symlinkSync(file, agent.configFile);
  change(directory);
  const running = agent.spawn();
  const isReady = running.logged(({ message }) => message === "ready").then(() => "ready");
  const word = await Promise.race([isReady, running.ended().then(() => running.stderr)]).catch(() => running.stderr);
  if (word === "ready") expect(await running.end()).toBe(0);
  return word;
}

describeWith("who may change what the agent goes by", ["root", "linux"], () => {
  beforeAll(compileExecutables);
  const plain = () => ({});
  const file = (directory: string): string => join(directory, "agent.yaml");

  test.each<[string, (directory: string) => void, string, string]>([
    [
      "everybody, the file",
      (etc) => chmodSync(file(etc), 0o666),
      "etc/agent.yaml",
      "can be written by others (mode 666)",
    ],
    [
      "a group, the file",
      (etc) => chmodSync(file(etc), 0o664),
      "etc/agent.yaml",
      "can be written by others (mode 664)",
    ],
    ["another user, the file", (etc) => chownSync(file(etc), stranger, 0), "etc/agent.yaml", "belongs to user 65534"],
    ["everybody, its directory", (etc) => chmodSync(etc, 0o777), "etc", "can be written by others (mode 777)"],
    ["another user, its directory", (etc) => chownSync(etc, stranger, 0), "etc", "belongs to user 65534"],
    [
      "another user, its directory, where only owners may",
      (etc) => {
        chownSync(etc, stranger, 0);
        chmodSync(etc, 0o1777);
      },
      "etc",
      "belongs to user 65534",
    ],
  ])("%s: it does not start, and says what to do", async (_, change, place, is) => {
    const word = await startAfter(plain, change);
    expect(word).toMatch(
      /^Cannot go by ".*\/agent\.yaml": ".*" .*, wanted only root.*"chown root" and "chmod go-w" it$/m,
    );
    expect(word).toContain(`/${place}" ${is}`);
  });

  test("nobody, although everybody may make files beside it, as in /tmp", async () => {
    expect(await startAfter(plain, (etc) => chmodSync(etc, 0o1777))).toBe("ready");
  });

  /** As the kubelet lays a ConfigMap out: https://github.com/kubernetes/kubernetes, pkg/volume/util/atomic_writer.go. */
  function asConfigMap(etc: string): void {
    const version = join(etc, "..2026_11_22_14_53_07.1234567890");
    mkdirSync(version, { mode: 0o755 });
    renameSync(file(etc), join(version, "agent.yaml"));
    symlinkSync("..2026_11_22_14_53_07.1234567890", join(etc, "..data"));
    symlinkSync("..data/agent.yaml", file(etc));
    chmodSync(etc, 0o777);
  }
  const mountedReadOnly = (etc: string): readonly string[] => {
    // What a container has of it; the agent's own files, which stand in it here, stay as they are.
    const script = `mount --bind "${etc}" "${etc}" && for d in "${etc}"/pipette-agent-*; do mount --bind "$d" "$d"; done &&
      mount -o remount,ro,bind "${etc}" && exec "$@"`;
    return [...ownNetwork, "--mount", "sh", "-c", script, "sh"];
  };

  test("nobody, in a pod: a ConfigMap's directory has mode 777, and is mounted read-only", async () => {
    expect(await startAfter(plain, asConfigMap, mountedReadOnly)).toBe("ready");
    // The same layout where everybody can turn the link.
    expect(await startAfter(plain, asConfigMap)).toContain('/etc" can be written by others (mode 777)');
  });

  test("another user, a link of a ConfigMap's directory or what it leads to: seen also where it is mounted read-only", async () => {
    const turned = (etc: string): void => {
      asConfigMap(etc);
      chownSync(join(etc, "..2026_11_22_14_53_07.1234567890"), stranger, stranger);
    };
    expect(await startAfter(plain, turned, mountedReadOnly)).toContain('/..data" belongs to user 65534');
  });

  const nodes = (registry: object) => ({
    networks: [{ name: "pods", bridge: "ptd0" }],
    nodes: { name: "n1", registry },
  });
  const etcd = { type: "etcd", endpoints: ["https://127.0.0.1:1"] };
  const kubernetes = { type: "kubernetes", server: "https://127.0.0.1:1" };
  test.each<[string, (path: string) => Readonly<Record<string, unknown>>]>([
    ["file of nodes", (file) => nodes({ type: "static", file })],
    ["etcd's authority", (ca) => nodes({ ...etcd, ca })],
    ["etcd's certificate", (cert) => nodes({ ...etcd, cert, key: "/none" })],
    ["etcd's key", (key) => nodes({ ...etcd, cert: "/none", key })],
    ["API server's authority", (ca) => nodes({ ...kubernetes, ca })],
    ["token", (token) => nodes({ ...kubernetes, token })],
    ["file of services", (file) => ({ dataPath: "ovs", ovs: { services: { file, cidrs: ["10.96.0.0/16"] } } })],
  ])("everybody, the %s that it names: it does not start", async (_, changesFor) => {
    let path = "";
    const changes = (home: AgentHome) => {
      path = join(home.directory, "named");
      writeFileSync(path, "nodes: []\n");
      chmodSync(path, 0o666);
      return changesFor(path);
    };
    const word = await startAfter(changes, () => undefined);
    expect(word).toContain(`"${path}" can be written by others (mode 666), wanted only root`);
  });
});

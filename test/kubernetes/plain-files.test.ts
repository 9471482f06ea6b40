import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { stringify } from "yaml";
import { type Manifest, object, objectsIn, plainObjects } from "../manifests/manifest.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";

const folder = new URL("../../conf/kubernetes/", import.meta.url).pathname;
const [file, openvswitch, uninstall] = ["pipette.yaml", "pipette-openvswitch.yaml", "pipette-uninstall.yaml"].map(
  (name) => `${folder}${name}`,
) as [string, string, string];
/** The last commit with a DaemonSet's file for each system, from which these have taken over. */
const before = "667d825";

const started = async (flags: Readonly<Record<string, boolean>>): Promise<ApiServer> => {
  const server = await ApiServer.start({ flags });
  const system = () => server.ask("GET", "/api/v1/namespaces/kube-system");
  await eventually(async () => (await system()).status === 200, "kube-system");
  return server;
};

/** As a file of its own. */
async function written(directory: string, name: string, objects: readonly Manifest[]): Promise<string> {
  const path = join(directory, name);
  await Bun.write(path, objects.map((each) => stringify(each)).join("---\n"));
  return path;
}

describeWith("the plain files at a real API server", ["kube-apiserver", "etcd", "openssl", "kubectl"], () => {
  let server: ApiServer;

  beforeAll(async () => {
    server = await started({ "allow-privileged": true });
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  test("are taken as they are, with no field that it does not know", async () => {
    for (const each of [file, openvswitch]) {
      const lines = await server.apply([each], "server");
      for (const name of ["pipette-agent", "pipette-agent-windows"])
        expect(lines).toContain(`daemonset.apps/${name} created (server dry run)`);
    }
    expect(await server.apply([uninstall], "server")).toHaveLength(2);
    const controller = await server.apply([`${folder}pipette-controller.yaml`], "server");
    expect(controller).toContain("deployment.apps/pipette-controller created (server dry run)");
    expect((await server.ask("GET", "/apis/apps/v1/daemonsets")).body).toMatchObject({ items: [] });
  });

  test("upgrade what the commit before has applied, and go back to it, and again", async (context) => {
    using scratch = scratchDir();
    const earlier: string[] = [];
    for (const name of ["registry-rbac.yaml", "linux-daemonset.yaml", "windows-daemonset.yaml"]) {
      const { status, stdout } = spawnSync("git", ["show", `${before}:conf/kubernetes/${name}`], { encoding: "utf8" });
      if (status !== 0) return context.skip(`the commit ${before} is not in this clone's history`);
      earlier.push(await written(scratch.path, name, objectsIn(stdout)));
    }
    await server.apply(earlier);
    // From bridges to Open vSwitch, too; an immutable field would end it.
    for (const files of [[file], earlier, [openvswitch], [file]]) {
      const lines = await server.apply(files);
      expect(lines).toContain("daemonset.apps/pipette-agent configured");
    }
    // What the server adds by itself is nothing that the next time would take away.
    expect(await server.kubectl("diff", "-f", file)).toBe("");
  });

  test("could not be upgraded with other selectors: they are final", async () => {
    using scratch = scratchDir();
    await server.apply([file]);
    const other = structuredClone(object(plainObjects(), "DaemonSet", "pipette-agent"));
    const { selector, template } = other["spec"];
    selector.matchLabels["app.kubernetes.io/instance"] = template.metadata.labels["app.kubernetes.io/instance"];
    const changed = await written(scratch.path, "other.yaml", [other]);
    await expect(server.apply([changed], "server")).rejects.toThrow("field is immutable");
  });

  test("a field that nobody knows is told of", async () => {
    using scratch = scratchDir();
    const path = join(scratch.path, "changed.yaml");
    await Bun.write(path, (await Bun.file(file).text()).replace("failurePolicy:", "failuresPolicy:"));
    await expect(server.apply([path], "server")).rejects.toThrow(/unknown field "spec.failuresPolicy"/);
  });
});

describeWith(
  "the plain files where no container may be privileged",
  ["kube-apiserver", "etcd", "openssl", "kubectl"],
  () => {
    test("what is for Linux is taken, and of what is for Windows nothing else is wrong", async () => {
      await using server = await started({});
      using scratch = scratchDir();
      for (const name of ["pipette.yaml", "pipette-openvswitch.yaml", "pipette-uninstall.yaml"]) {
        const objects = plainObjects(name);
        const isForWindows = ({ kind, metadata }: Manifest) =>
          kind === "DaemonSet" && metadata.name.endsWith("windows");
        const linux = objects.filter((each) => !isForWindows(each));
        expect(await server.apply([await written(scratch.path, name, linux)], "server")).toHaveLength(linux.length);
        const windows = await written(scratch.path, `windows-${name}`, objects.filter(isForWindows));
        await expect(server.apply([windows], "server")).rejects.toThrow(
          /The DaemonSet "pipette-[a-z-]+-windows" is invalid: spec\.template\.spec: Forbidden: hostProcess containers are disallowed by cluster policy$/,
        );
      }
    });
  },
);

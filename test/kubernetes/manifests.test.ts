import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";

const folder = new URL("../../conf/kubernetes/", import.meta.url).pathname;
const file = (name: string): string => `${folder}${name}`;
const all = readdirSync(folder).map(file);

const started = async (flags: Readonly<Record<string, boolean>>): Promise<ApiServer> => {
  const server = await ApiServer.start({ flags });
  const system = () => server.ask("GET", "/api/v1/namespaces/kube-system");
  await eventually(async () => (await system()).status === 200, "kube-system");
  return server;
};

describeWith("the manifests at a real API server", ["kube-apiserver", "etcd", "openssl", "kubectl"], () => {
  let server: ApiServer;

  beforeAll(async () => {
    server = await started({ "allow-privileged": true });
  });
  afterAll(() => server?.[Symbol.asyncDispose]());

  test("are taken as they are, with no field that it does not know", async () => {
    const lines = await server.apply(all, "server");
    expect(lines).toContain("daemonset.apps/pipette-agent created (server dry run)");
    expect(lines).toContain("daemonset.apps/pipette-agent-windows created (server dry run)");
    expect((await server.ask("GET", "/apis/apps/v1/daemonsets")).body).toMatchObject({ items: [] });
  });

  test("can be applied again and again", async () => {
    const first = await server.apply(all);
    expect(first.map((line) => line.split(" ")[1])).toEqual(first.map(() => "created"));
    // What the server adds by itself is nothing that a second time would take away.
    expect(await server.kubectl("diff", ...all.flatMap((each) => ["-f", each]))).toBe("");
    expect(await server.apply(all)).toHaveLength(first.length);
  });

  test("a field that nobody knows is told of", async () => {
    const text = (await Bun.file(file("registry-rbac.yaml")).text()).replace("failurePolicy:", "failuresPolicy:");
    using scratch = scratchDir();
    const changed = `${scratch.path}/changed.yaml`;
    await Bun.write(changed, text);
    await expect(server.apply([changed], "server")).rejects.toThrow(/unknown field "spec.failuresPolicy"/);
  });
});

describeWith(
  "the manifests where no container may be privileged",
  ["kube-apiserver", "etcd", "openssl", "kubectl"],
  () => {
    test("the Linux DaemonSet is taken, and of the Windows one nothing else is wrong", async () => {
      await using server = await started({});
      expect(await server.apply([file("linux-daemonset.yaml")], "server")).toHaveLength(1);
      await expect(server.apply([file("windows-daemonset.yaml")], "server")).rejects.toThrow(
        /The DaemonSet "pipette-agent-windows" is invalid: spec\.template\.spec: Forbidden: hostProcess containers are disallowed by cluster policy$/,
      );
    });
  },
);

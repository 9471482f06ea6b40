import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { type Manifest, object, objectsIn, pathOf, plainObjects } from "../manifests/manifest.ts";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { scratchDir } from "../support/scratch-dir.ts";
import { ApiServer } from "./api-server.ts";
import { kubernetesProgram, whyNoKubernetes } from "./assets.ts";

const kubectl = kubernetesProgram("kubectl");
/** The last commit with files of the DaemonSets' own, from which the plain files have taken over. */
const before = "667d825";
const earlierFiles = ["registry-rbac.yaml", "linux-daemonset.yaml", "windows-daemonset.yaml"];

/** Nothing where this clone's history does not go back so far. */
function earlierObjects(): readonly Manifest[] {
  return earlierFiles.flatMap((name) => {
    const { status, stdout } = spawnSync("git", ["show", `${before}:conf/kubernetes/${name}`], { encoding: "utf8" });
    return status === 0 ? objectsIn(stdout) : [];
  });
}

/** An API server that allows no privileged containers takes no HostProcess pods. */
const isWindowsPod = ({ kind, metadata }: Manifest): boolean => kind === "DaemonSet" && /windows/.test(metadata.name);

describeWith("the plain files at a real API server", ["kube-apiserver", "etcd", "openssl"], () => {
  let server: ApiServer;
  let scratch: ReturnType<typeof scratchDir>;

  beforeAll(async () => {
    server = await ApiServer.start();
    scratch = scratchDir();
    const isThere = async () => (await server.ask("GET", "/api/v1/namespaces/kube-system")).status === 200;
    await eventually(isThere, "kube-system");
  });
  afterAll(async () => {
    scratch?.[Symbol.dispose]();
    await server?.[Symbol.asyncDispose]();
  });

  const dryRun = (manifest: Manifest) =>
    server.ask("POST", `${pathOf(manifest)}?dryRun=All&fieldValidation=Strict`, manifest);

  test.each(["pipette.yaml", "pipette-openvswitch.yaml", "pipette-uninstall.yaml"])(
    "%s is taken as it is, where no container may be privileged",
    async (file) => {
      const objects = plainObjects(file).filter((each) => !isWindowsPod(each));
      expect(objects.length).toBeGreaterThan(0);
      for (const each of objects) expect(await dryRun(each), each.metadata.name).toMatchObject({ status: 201 });
    },
  );

  test.each(["pipette.yaml", "pipette-uninstall.yaml"])(
    "nothing is wrong with the pods for Windows of %s but that they need to be",
    async (file) => {
      const pods = plainObjects(file).filter(isWindowsPod);
      expect(pods).toHaveLength(1);
      for (const each of pods)
        expect((await dryRun(each)).body.message).toMatch(
          /^DaemonSet\.apps "pipette-[a-z-]+" is invalid: spec\.template\.spec: Forbidden: hostProcess containers are disallowed by cluster policy$/,
        );
    },
  );

  test("a key that Kubernetes does not know is refused, so what is taken has none", async () => {
    const daemonSet = structuredClone(object(plainObjects(), "DaemonSet", "pipette-agent"));
    daemonSet["spec"].template.spec.hostNetwrok = true;
    expect((await dryRun(daemonSet)).body.message).toContain("hostNetwrok");
  });

  const noHistory = earlierObjects().length === 0 && `the commit ${before} is not in this clone's history`;
  const unable = whyNoKubernetes("kubectl") ?? noHistory;

  describe("with kubectl", () => {
    async function apply(objects: readonly Manifest[], ...more: readonly string[]) {
      const file = join(scratch.path, "objects.yaml");
      writeFileSync(
        file,
        objects
          .filter((each) => !isWindowsPod(each))
          .map((each) => stringify(each))
          .join("---\n"),
      );
      const who = ["--server", server.url, "--certificate-authority", server.ca, "--token", "administrator"];
      const words = ["apply", "--validate=strict", "-f", file, ...more];
      const env = { HOME: scratch.path };
      return execa(kubectl, [...who, ...words], { env, reject: false, all: true });
    }

    test("it upgrades what the commit before has applied, and goes back to that", async (context) => {
      if (unable !== false) return context.skip(unable);
      expect(await apply(earlierObjects())).toMatchObject({ exitCode: 0 });
      for (const objects of [
        plainObjects(),
        earlierObjects(),
        plainObjects("pipette-openvswitch.yaml"),
        plainObjects(),
      ])
        for (const trial of [["--dry-run=server"], []]) {
          const { exitCode, all } = await apply(objects, ...trial);
          expect([exitCode, all]).toEqual([0, expect.stringContaining("daemonset.apps/pipette-agent configured")]);
        }
    });

    test("other selectors could not be applied over it: they are final", async (context) => {
      if (unable !== false) return context.skip(unable);
      await apply(plainObjects());
      const other = structuredClone(object(plainObjects(), "DaemonSet", "pipette-agent"));
      const { selector, template } = other["spec"];
      selector.matchLabels["app.kubernetes.io/instance"] = template.metadata.labels["app.kubernetes.io/instance"];
      const { exitCode, all } = await apply([other], "--dry-run=server");
      expect([exitCode, all]).toEqual([1, expect.stringContaining("field is immutable")]);
    });
  });
});

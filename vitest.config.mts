import { statSync } from "node:fs";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

// Under Wine; each file has a Windows of its own.
const windows = ["test/windows/**/*.test.ts", "test/windows-host/**/*.test.ts"];
// Needs nothing of the machine but its processor.
const fuzzing = ["test/{fuzz,mutants,policies}/**/*.test.ts"];

// Whole clusters take some twelve minutes more, and what is Antrea's has to be built: only "npm run test:kubernetes"
// runs them.
const clusters = [
  "antrea-agent",
  "antrea-controller",
  "bridge",
  "open-vswitch",
  "first-cluster",
  "openvswitch-pods",
  "policies",
].map((name) => `test/kubernetes/${name}.test.ts`);

// Tests that start our plugins, once more with the small program of forward/ in front of them. Always: the verbs, agents
// that answer anything or nothing, and plugin and agent struck at any step. All by "npm run test:forwarded".
const forwarded = [
  "test/conformance/{agent-call,execution-protocol,gc-status}.test.ts",
  "test/faults/{agent-steps,plugin-killed}.test.ts",
];
const forwardedRest = [
  // Without those that look into the executable, or bring a small program themselves.
  "test/conformance/!(faults|forwarded|small-program|start-up).test.ts",
  "test/ipam/{churn,damaged,differential,hostile-disk,killed,main-plugins,parallel,takeover}.test.ts",
  "test/{clients,faults}/**/*.test.ts",
  "test/hostile/*.test.ts",
  "test/overlay/single-node*.test.ts",
];
// Waiting longer costs nothing where it works; a busy machine needs more than the second that polls have by default.
const expect = { poll: { timeout: 45_000 } };
/** Longer than what is waited for, so that a failure says what that was. */
const testTimeout = 120_000;
const hookTimeout = 120_000;

/**
 * What is with real parts first, the larger files before the smaller ones, which mostly take less, and unit tests at the
 * end, where they are so short that all workers are done at about the same time.
 */
class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ project, moduleId }: TestSpecification): number =>
      (project.name === "unit" ? 2 ** 32 : 0) - statSync(moduleId).size;
    return files.toSorted((a, b) => place(a) - place(b));
  }
}

const inFront = {
  env: { PIPETTE_IN_FRONT: "1" },
  globalSetup: ["test/support/in-front-setup.ts"],
  testTimeout,
  hookTimeout,
  expect,
};

const config = defineConfig({
  test: {
    pool: "forks",
    // Tests with real parts mostly wait: so many keep two cores busy.
    maxWorkers: 5,
    sequence: { sequencer: LongFilesFirst },
    setupFiles: ["test/support/file-processor.ts"],
    // A spy ends with its test, also where that fails.
    restoreMocks: true,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["{cni,ipam,agent,controller,operator,ui,shared,build,forward}/**/*.test.ts", ...fuzzing],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          expect,
        },
      },
      {
        extends: true,
        test: {
          name: "system",
          include: ["test/**/*.test.ts"],
          exclude: [...windows, ...clusters, ...fuzzing],
          testTimeout,
          hookTimeout,
          expect,
        },
      },
      {
        extends: true,
        test: {
          name: "windows",
          include: windows,
          globalSetup: ["test/windows/wine/run-directory.ts"],
          testTimeout,
          // Of the first, which makes the Windows that all others copy.
          hookTimeout: 240_000,
          expect,
        },
      },
      { extends: true, test: { ...inFront, name: "forwarded", include: forwarded } },
      {
        extends: true,
        test: {
          ...inFront,
          name: "forwarded-rest",
          include: forwardedRest,
          exclude: forwarded,
        },
      },
      {
        extends: true,
        test: {
          name: "clusters",
          include: clusters,
          fileParallelism: false,
          maxWorkers: 1,
          // Twenty pods of a kubelet and more, several times; a control plane and three nodes.
          testTimeout: 180_000,
          hookTimeout: 300_000,
          expect,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});

/** Names of all projects, for those who run them apart. */
export const projects: readonly string[] = (config.test?.projects ?? []).flatMap((project) =>
  typeof project === "object" && "test" in project ? [String(project.test?.name)] : [],
);

export default config;

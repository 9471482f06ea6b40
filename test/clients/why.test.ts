import { rmSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/agent-process.ts";
import { describeWith } from "../support/requires.ts";
import { ContainerdNode } from "./containerd-node.ts";

interface Told {
  readonly status: number;
  readonly result: string;
  readonly code: string;
  readonly cause: string;
  readonly evidence: readonly string[];
  readonly asked: readonly { readonly source: string; readonly failure?: string }[];
}

describeWith(
  "why a pod has no network, by a real containerd",
  ["root", "containerd", "cni-plugins", "gcc", "busybox", "nft"],
  () => {
    let node: ContainerdNode;
    beforeAll(async () => {
      node = await ContainerdNode.start();
    }, 120_000);
    afterEach(() => node?.clear());
    afterAll(() => node?.[Symbol.asyncDispose]());

    /** On the node itself, where the runtime's paths are. */
    async function why(pod: string | undefined, ...more: readonly string[]): Promise<Told> {
      const { base, containerd } = node;
      const way = ["--json", "--socket", base.home.socket, "--config", base.home.configFile];
      const runtime = more.includes("--runtime") ? [] : ["--runtime", `unix://${containerd.socket}`];
      const words = [...(pod === undefined ? [] : [pod]), ...way, ...runtime, ...more];
      const [file = "", ...args] = [...base.node.prefix, join(base.wholeDir, "pipette"), "why", ...words];
      const { stdout, stderr, exitCode } = await execa(file, args, { cwd: "/", reject: false, stdin: "ignore" });
      expect(stderr).toBe("");
      return { status: exitCode ?? -1, ...JSON.parse(stdout) };
    }
    const runtimeOf = ({ asked }: Told) => asked.find(({ source }) => source === "the container runtime");

    test("its sandbox is there with its namespace and addresses, and who asks is told so", async () => {
      const id = await node.cri.runPod("web");
      const { netns, addresses } = await node.cri.podStatus(id);
      const told = await why("default/web");
      expect(told).toMatchObject({ status: 0, result: "fine" });
      expect(told.evidence).toContainEqual(
        expect.stringMatching(
          new RegExp(
            `^runtime: sandbox ${id.slice(0, 13)}, ready, made \\d+ s ago, at ${addresses.join(", ")}, in ${netns}$`,
          ),
        ),
      );
      expect(runtimeOf(told)).toEqual({ source: "the container runtime" });
      // Another pod's sandbox is none of its own.
      expect((await why("default/other")).evidence).toContain("runtime: it has no sandbox of the pod");
    });

    test("a namespace that somebody removed, and a sandbox that has ended", async () => {
      const id = await node.cri.runPod("robbed");
      const { netns } = await node.cri.podStatus(id);
      await node.base.node.run(`umount ${netns}`);
      await node.base.node.run(`rm ${netns}`);
      expect(await why("default/robbed")).toMatchObject({
        status: 1,
        code: "namespace-gone",
        cause: expect.stringContaining(netns),
      });
      const ended = await node.cri.runPod("ended");
      await node.cri.stopPod(ended);
      expect(await why("default/ended")).toMatchObject({
        ...{ status: 1, code: "sandbox-ended" },
        evidence: expect.arrayContaining([expect.stringMatching(/^runtime: sandbox .*, not ready, /)]),
      });
    }, 60_000);

    test("a runtime that is frozen, away, or no runtime is named, and keeps nobody else from answering", async () => {
      await node.cri.runPod("web");
      node.containerd.signal("SIGSTOP");
      try {
        const told = await why("default/web");
        expect([told.status, runtimeOf(told)?.failure]).toEqual([
          0,
          expect.stringMatching(/there is no answer at ".*" after 4000 ms/),
        ]);
      } finally {
        node.containerd.signal("SIGCONT");
      }
      const away = await why("default/web", "--runtime", "/run/none.sock");
      expect(runtimeOf(away)?.failure).toBe('nobody serves "/run/none.sock"');
      const other = await why("default/web", "--runtime", node.base.home.socket);
      expect([other.status, runtimeOf(other)?.failure]).toEqual([
        0,
        expect.stringContaining("is no runtime that speaks CRI"),
      ]);
    }, 60_000);

    test("a runtime without a network configuration says so", async () => {
      await node.agent.end();
      rmSync(node.base.home.conflist, { force: true });
      rmSync(join(node.base.confDir, "10-pipette.conflist"), { force: true });
      await eventually(async () => (await node.cri.networkProblem()) !== undefined, "containerd to miss its network");
      const gone = await why(undefined);
      expect(gone).toMatchObject({ status: 1, code: "agent-away" });
      expect(gone.evidence).toContainEqual(
        expect.stringMatching(/^runtime: its network is not ready: .*cni plugin not initialized/),
      );
      await node.startAgent();
      await node.networkReady();
      expect(await why(undefined)).toMatchObject({ status: 0, result: "fine" });
    }, 60_000);
  },
);

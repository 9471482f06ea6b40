import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { PluginNode, podResult, result } from "../test/fakes/plugin-node.ts";
import { maxDelegateLogBytes } from "./delegate.ts";

vi.mock(import("../shared/rpc/call.ts"), () => import("../test/fakes/agent-calls.ts") as never);

const newNode = (): PluginNode => new PluginNode(() => result(podResult));

describe("another IPAM plugin", () => {
  test("gets the configuration as it came, our environment with the verb, and its stderr is passed on", async () => {
    using node = newNode();
    const said = `cat >${node.bin}/stdin; env >${node.bin}/env; printf 'two words\\n' >&2; echo '${podResult}'`;
    const { status, log } = await node.call("ADD", { ipam: node.plugin("other", said), x: 1 }, { MORE: "env" });
    expect([status, log]).toEqual([0, ["two words"]]);
    expect(JSON.parse(await Bun.file(`${node.bin}/stdin`).text())).toMatchObject({ name: "n", x: 1 });
    const env = (await Bun.file(`${node.bin}/env`).text()).split("\n");
    expect(env).toEqual(expect.arrayContaining(["CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "MORE=env"]));
  });

  test("is the first of its name in CNI_PATH's absolute directories", async () => {
    using node = newNode();
    const ipam = node.plugin("other", `echo '${podResult}'`);
    const later = `${node.bin}/later`;
    mkdirSync(later);
    writeFileSync(`${later}/other`, "#!/bin/sh\nexit 1\n");
    chmodSync(`${later}/other`, 0o755);
    const path = `bin:${node.bin}/none:${node.bin}:${later}`;
    expect((await node.call("ADD", { ipam }, { CNI_PATH: path })).status).toBe(0);
    const { out } = await node.call("ADD", { ipam }, { CNI_PATH: "bin" });
    expect(out).toMatchObject({ code: 4, msg: expect.stringContaining('CNI_PATH is "bin", wanted absolute') });
  });

  test("that does not start is named", async () => {
    using node = newNode();
    const ipam = node.plugin("other", "");
    chmodSync(`${node.bin}/other`, 0o644);
    const { out } = await node.call("ADD", { ipam });
    const is = `"${node.bin}/other" does not start, wanted an executable`;
    expect(out).toMatchObject({ code: 5, msg: `Cannot run ADD of the IPAM plugin "other": ${is}` });
    expect(out.details).not.toBe("");
  });

  test("that does not end is ended, and its last words are told", async () => {
    using node = newNode();
    const ipam = node.plugin(
      "other",
      "test $CNI_COMMAND = ADD || exit 0; echo waiting >&2; echo $$ >$0.pid; exec sleep 60",
    );
    const { out } = await node.call("ADD", { ipam, addTimeoutMs: 1000 });
    const msg = 'Cannot run ADD of the IPAM plugin "other": it has not ended after 1000 ms';
    expect(out).toMatchObject({ code: 11, msg, details: "waiting" });
    const pid = Number(await Bun.file(`${node.bin}/other.pid`).text());
    await expect.poll(() => Bun.file(`/proc/${pid}/stat`).exists()).toBe(false);
  });

  test.each([
    [
      `echo '{"code":137,"msg":"closed","details":"until noon"}'; exit 1`,
      137,
      "closed",
      'until noon (reported by the IPAM plugin "other")',
    ],
    [`echo '{"code":137,"msg":"closed","details":""}'; exit 1`, 137, "closed", 'reported by the IPAM plugin "other"'],
    [`echo '{"code":137,"msg":"closed"}'; exit 1`, 137, "closed", 'reported by the IPAM plugin "other"'],
    [
      "echo words; echo why >&2; exit 3",
      101,
      'it ended with status 3 and wrote "words\\n" to standard output, wanted a CNI error',
      "why",
    ],
    ["kill -9 $$", 101, 'it ended by SIGKILL and wrote "" to standard output', ""],
    [`echo '{"code":1.5,"msg":"closed"}'; exit 1`, 101, "wanted a CNI error", ""],
    [`echo '{"code":"1","msg":"closed"}'; exit 1`, 101, "wanted a CNI error", ""],
    [`echo '{"code":1}'; exit 1`, 101, "wanted a CNI error", ""],
    ["echo '[]'; exit 1", 101, "wanted a CNI error", ""],
  ])("that fails with %s is passed on as an error", async (body, code, msg, details) => {
    using node = newNode();
    const { out } = await node.call("ADD", {
      ipam: node.plugin("other", `test $CNI_COMMAND = ADD || exit 0; ${body}`),
    });
    expect(out).toEqual({ cniVersion: "1.1.0", code, msg: expect.stringContaining(msg), details });
  });

  test("that says very much blocks on nothing, and is cut", async () => {
    using node = newNode();
    const many = maxDelegateLogBytes + 1000;
    const body = `head -c ${many} /dev/zero | tr '\\0' x >&2; echo '${podResult}'`;
    const { status, log } = await node.call("ADD", { ipam: node.plugin("other", body) });
    expect([status, log.map((line) => line.length)]).toEqual([0, [maxDelegateLogBytes]]);
  });
});

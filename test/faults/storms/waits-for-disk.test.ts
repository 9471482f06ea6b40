import { readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { beforeAll, expect, test } from "vitest";
import { limits } from "../../../shared/limits.ts";
import { leasesIn } from "../../conformance/leases.ts";
import { compileExecutables, executables, scratch, variables } from "../../conformance/plugin.ts";
import { ipamCall, mustSucceed } from "../../ipam/ipam-call.ts";
import { runPlugin } from "../../support/cni-call.ts";
import { describeWith } from "../../support/requires.ts";

/**
 * A plugin that leaves the closing of its database to the end of its process would move the whole log, under the
 * writer's lock: in a node's drain without an agent each DEL would keep all others waiting for the disk.
 */
describeWith("a plugin that uses the database without an agent", ["linux", "strace"], () => {
  beforeAll(compileExecutables);

  test.each(["DEL", "STATUS"])("%s waits for no disk", async (verb) => {
    using data = scratch();
    const ipam = { type: "pipette-ipam", dataDir: data.path, ranges: [[{ subnet: "10.81.0.0/24" }]] };
    const conf = { cniVersion: "1.1.0", name: "n", ipam };
    await mustSucceed(ipamCall("ADD", "c1", conf));
    await mustSucceed(ipamCall("ADD", "c2", conf));

    const trace = join(data.path, "trace");
    const ended = await runPlugin({
      prefix: ["strace", "--follow-forks", "--trace=fsync,fdatasync,exit_group", "-o", trace],
      executable: join(executables, "pipette"),
      env: variables(verb, { CNI_CONTAINERID: "c1" }),
      conf: { ...conf, type: "pipette", socket: join(data.path, "nobody.sock"), dataDir: data.path },
    });
    expect(ended.status, ended.stdout).toBe(verb === "DEL" ? 0 : 1);
    expect(readFileSync(trace, "utf8").match(/\w+(?=\()/g)).toEqual(["exit_group"]);
    const states = (await leasesIn(data.path)).map(({ state }) => state);
    expect(states).toEqual([verb === "DEL" ? "releasing" : "allocated", "allocated"]);
  });

  test("DEL waits for the lock as long as it would for the agent, and is done then", async () => {
    using data = scratch();
    const ipam = { type: "pipette-ipam", dataDir: data.path, ranges: [[{ subnet: "10.81.0.0/24" }]] };
    const conf = { cniVersion: "1.1.0", name: "n", ipam };
    await mustSucceed(ipamCall("ADD", "c1", conf));
    using holder = new DatabaseSync(join(data.path, "leases.db"));
    holder.exec("BEGIN IMMEDIATE");
    const ending = runPlugin({
      executable: join(executables, "pipette"),
      env: variables("DEL"),
      conf: { ...conf, type: "pipette", socket: join(data.path, "nobody.sock"), dataDir: data.path },
    });
    await Bun.sleep(limits.storeLockMs + 1_500);
    holder.exec("ROLLBACK");
    expect(await ending).toMatchObject({ status: 0, stdout: "" });
    expect((await leasesIn(data.path)).map(({ state }) => state)).toEqual(["releasing"]);
  });
});

import { expect, test } from "vitest";
import { compileExecutables, scratch } from "../conformance/plugin.ts";
import { type CniCall, callPlugin, runPlugin } from "../support/cni-call.ts";
import { describeWith } from "../support/requires.ts";
import { ipamCall, pipetteIpam } from "./ipam-call.ts";

/** The plugin in a mount namespace of its own where `dir` is a small file system prepared by `script`. */
const on = (dir: string, script: string): Partial<CniCall> => ({
  executable: pipetteIpam,
  prefix: ["unshare", "-m", "sh", "-ec", `${script}; exec "$@"`, "sh"],
  env: { DIR: dir },
});

const confIn = (dataDir: string) => ({
  cniVersion: "1.1.0",
  name: "pt-disk",
  ipam: { type: "pipette-ipam", dataDir, ranges: [[{ subnet: "10.79.0.0/24" }]] },
});

describeWith("a disk that will not do", ["root"], () => {
  const keep = 'rm -rf "$DIR.kept"; cp -a "$DIR" "$DIR.kept"';
  const readOnly = `mount --bind "$DIR" "$DIR"; mount -o remount,ro,bind "$DIR"`;
  const full = `${keep}; mount -t tmpfs -o size=96k none "$DIR"; cp -a "$DIR.kept/." "$DIR"; cat /dev/zero > "$DIR/rest" 2>&- || true`;

  test.each([
    ["read-only", readOnly, /(it is read-only|it cannot be opened)/],
    ["full", full, /the disk is full/],
  ])("%s: ADD and STATUS say so with the path, and nothing changes", async (_name, script, wanted) => {
    compileExecutables();
    using data = scratch();
    const dir = `${data.path}/data`;
    await callPlugin(ipamCall("ADD", "c1", confIn(dir)));
    for (const [verb, code] of [
      ["ADD", 101],
      ["STATUS", 50],
    ] as const) {
      const { status, stdout, stderr } = await runPlugin(ipamCall(verb, "c2", confIn(dir), on(dir, script)));
      expect(status, stderr).toBe(1);
      const error = JSON.parse(stdout);
      expect(error.code).toBe(code);
      expect(error.msg).toContain(`"${dir}/leases.db"`);
      expect(error.msg).toMatch(wanted);
    }
    // Usable again afterwards, with everything that it held.
    const again = await callPlugin(ipamCall("ADD", "c1", confIn(dir)));
    expect(JSON.parse(again.stdout).ips).toEqual([{ address: "10.79.0.2/24", gateway: "10.79.0.1" }]);
    const next = await callPlugin(ipamCall("ADD", "c2", confIn(dir)));
    expect(JSON.parse(next.stdout).ips[0].address).toBe("10.79.0.3/24");
  });

  test("read-only where nothing was ever leased: DEL succeeds, ADD names the directory", async () => {
    compileExecutables();
    using data = scratch();
    const dir = `${data.path}/none`;
    const there = (verb: string) =>
      runPlugin(ipamCall(verb, "c1", confIn(`${dir}/deeper`), on(dir, `mkdir -p "$DIR"; ${readOnly}`)));
    expect((await there("DEL")).status).toBe(0);
    const { status, stdout } = await there("ADD");
    expect(status).toBe(1);
    expect(JSON.parse(stdout).msg).toContain(`Cannot create the lease database "${dir}/deeper/leases.db"`);
  });
});

import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DebianPackages } from "../../build/image/debian-files.ts";
import { openVswitchFor } from "../../build/release/images.ts";
import { version } from "../../shared/version.ts";
import { openVswitchArchive } from "../clients/openvswitch-archive.ts";
import { describeWith } from "../support/requires.ts";

// That it does its work as the manifest asks for it is shown where it does: test/clients/confined-openvswitch.test.ts,
// test/kubernetes/openvswitch-pods.test.ts.
describeWith("the image of Open vSwitch", ["linux", "root", "openvswitch", "skopeo"], () => {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-image-"));
  let archive: string;
  let about: { readonly Labels: Readonly<Record<string, string>> };
  const inspect = async (...options: readonly string[]) =>
    JSON.parse((await execa("skopeo", ["inspect", ...options, `oci-archive:${archive}`])).stdout);

  beforeAll(async () => {
    archive = openVswitchArchive(scratch);
    about = await inspect();
  });
  afterAll(() => rmSync(scratch, { recursive: true, force: true }));

  test("is what skopeo takes for one, with the digests that it says, and tells which of Debian's packages it is of", async () => {
    expect(about).toMatchObject({
      Os: "linux",
      Architecture: "amd64",
      Created: "1970-01-01T00:00:00Z",
      Labels: {
        "org.opencontainers.image.title": "pipette-openvswitch",
        "org.opencontainers.image.version": version,
        "io.pipette.debian-packages": expect.stringMatching(/\bopenvswitch-switch=\d+\.\d+/),
      },
    });
    await execa("skopeo", ["copy", "--quiet", `oci-archive:${archive}`, `dir:${join(scratch, "copied")}`]);
  });

  test("has its programs with the libraries of each, the licence of each package, and no other program", async () => {
    const root = join(scratch, "root");
    mkdirSync(root);
    for (const { digest } of (await inspect("--raw")).layers)
      await execa("tar", ["-xf", join(scratch, "copied", digest.replace("sha256:", "")), "-C", root]);
    const programs = (directory: string): readonly string[] =>
      readdirSync(join(root, "usr", directory)).filter((name) =>
        lstatSync(join(root, "usr", directory, name)).isFile(),
      );
    expect([...programs("bin")].sort()).toEqual([...tools, "dash", "mv", "rm"].sort());
    expect(programs("sbin")).toEqual(["ovsdb-server"]);
    for (const name of [...tools, "mv", "rm", "ovsdb-server", "ovs-vswitchd"]) {
      const { stdout } = await execa("chroot", [root, "sh", "-c", `exec ${name} --version`], { env: { PATH: path } });
      expect(stdout, name).toMatch(/\(Open vSwitch\) \d|\(GNU coreutils\)/);
    }
    const packages = about.Labels["io.pipette.debian-packages"]?.split(" ").map((each) => each.replace(/=.*/, ""));
    const without = packages?.filter((name) => !existsSync(join(root, "usr/share/doc", name, "copyright")));
    // Of that one there are only the texts that the others refer to.
    expect(without).toEqual(["base-files"]);
    expect(existsSync(join(root, "usr/share/common-licenses/Apache-2.0"))).toBe(true);
  });

  test("is left out, with the reason, where neither its packages are here nor apt", () => {
    const { PATH } = process.env;
    process.env["PATH"] = scratch;
    try {
      const none = { full: version, tag: version, time: 0, commit: undefined };
      expect(openVswitchFor("arm64", new DebianPackages("arm64", scratch), none)).toMatch(
        /^There is no image "pipette-openvswitch" for arm64: /,
      );
    } finally {
      process.env["PATH"] = PATH;
    }
  });
});

const tools = ["ovs-appctl", "ovs-dpctl", "ovs-ofctl", "ovs-vsctl", "ovsdb-client", "ovsdb-tool"];
const path = "/usr/sbin:/usr/bin:/sbin:/bin";

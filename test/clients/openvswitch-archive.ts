import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DebianPackages } from "../../build/image/debian-files.ts";
import { ociLayout } from "../../build/image/oci-layout.ts";
import { openVswitchFor } from "../../build/release/images.ts";
import { tar } from "../../shared/archive/tar.ts";
import { version } from "../../shared/version.ts";

/** As manifests name it. */
export const openVswitchImage = `pipette-openvswitch:${version}`;

/** Makes the image of Open vSwitch as `npm run image` does. @returns the archive's path */
export function openVswitchArchive(directory: string): string {
  const debian = new DebianPackages("amd64", join(directory, "debian"));
  const made = openVswitchFor("amd64", debian, { full: version, tag: version, time: 0, commit: undefined });
  if (typeof made === "string") throw new Error(made);
  const path = join(directory, "openvswitch.image.tar");
  const name = { repository: "docker.io/library/pipette-openvswitch", tag: version };
  writeFileSync(path, tar(ociLayout([made.image], name)));
  return path;
}

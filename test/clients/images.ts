import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { layerOf, ociLayout } from "../../build/image/oci-layout.ts";
import { type TarEntry, tar } from "../../shared/archive/tar.ts";

/** Names of the two images; nothing is ever fetched under them. */
export const pauseImage = "pipette.test/pause:1";
export const busyboxImage = "pipette.test/busybox:1";

const applets = ["sh", "sleep", "ping", "ip", "cat", "wget", "httpd", "true"];

/** Makes both images out of this machine's gcc and busybox. Answers the archives' paths, OCI layouts as `ctr` and `podman` load them. */
export async function makeImages(directory: string): Promise<{ readonly pause: string; readonly busybox: string }> {
  const pause = join(directory, "pause");
  await execa("gcc", ["-static", "-Os", "-s", "-o", pause, join(import.meta.dirname, "pause.c")]);
  const paths = { pause: join(directory, "pause.tar"), busybox: join(directory, "busybox.tar") };
  const program = (path: string, from: string): TarEntry => ({
    t: "file",
    path,
    mode: 0o755,
    bytes: readFileSync(from),
  });
  writeFileSync(paths.pause, image(pauseImage, [program("pause", pause)], ["/pause"]));
  const links = applets.map((name): TarEntry => ({ t: "link", path: `bin/${name}`, link: "busybox" }));
  writeFileSync(
    paths.busybox,
    image(busyboxImage, [program("bin/busybox", "/usr/bin/busybox"), ...links], ["/bin/sh"]),
  );
  return paths;
}

/** An OCI image layout (image-spec 1.0) of one layer, as an archive. */
export function image(name: string, files: readonly TarEntry[], entrypoint: readonly string[]): Uint8Array {
  const directories = ["etc", "proc", "sys", "dev", "tmp", "bin", "run"];
  const layer = layerOf([
    ...directories.map((path): TarEntry => ({ t: "directory", path: `${path}/`, mode: 0o755 })),
    ...files,
  ]);
  const [repository = "", tag = ""] = name.split(":");
  const config = { Entrypoint: entrypoint, Env: ["PATH=/bin"], WorkingDir: "/" };
  const about = { os: "linux", architecture: "amd64", created: 0, annotations: {} } as const;
  return tar(ociLayout([{ ...about, layers: [layer], config }], { repository, tag }));
}

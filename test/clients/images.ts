import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import { type TarEntry, tar } from "./tar.ts";

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
  const blobs: TarEntry[] = [];
  const blob = (mediaType: string, bytes: Uint8Array) => {
    const hex = createHash("sha256").update(bytes).digest("hex");
    blobs.push({ t: "file", path: `blobs/sha256/${hex}`, mode: 0o644, bytes });
    return { mediaType, digest: `sha256:${hex}`, size: bytes.length };
  };
  const layer = blob(
    "application/vnd.oci.image.layer.v1.tar",
    tar([...directories.map((path): TarEntry => ({ t: "directory", path: `${path}/`, mode: 0o755 })), ...files]),
  );
  const config = blob(
    "application/vnd.oci.image.config.v1+json",
    json({
      architecture: "amd64",
      os: "linux",
      config: { Entrypoint: entrypoint, Env: ["PATH=/bin"], WorkingDir: "/" },
      rootfs: { type: "layers", diff_ids: [layer.digest] },
    }),
  );
  const manifestType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = blob(manifestType, json({ schemaVersion: 2, mediaType: manifestType, config, layers: [layer] }));
  const annotations = { "io.containerd.image.name": name, "org.opencontainers.image.ref.name": name.split(":")[1] };
  const file = (path: string, value: unknown): TarEntry => ({ t: "file", path, mode: 0o644, bytes: json(value) });
  return tar([
    file("oci-layout", { imageLayoutVersion: "1.0.0" }),
    file("index.json", { schemaVersion: 2, manifests: [{ ...manifest, annotations }] }),
    ...blobs,
  ]);
}

const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

import { createHash } from "node:crypto";
import { type TarEntry, tar } from "../../shared/archive/tar.ts";
import { gzip } from "../archive/deflate.ts";

/** Images as the Open Container Initiative writes them down (image-spec 1.0), without a registry or a daemon. */

export interface Layer {
  /** Compressed. */
  readonly bytes: Uint8Array;
  /** Of what it is uncompressed. */
  readonly diffId: string;
}

export interface Image {
  readonly os: "linux" | "windows";
  readonly architecture: "amd64" | "arm64";
  readonly layers: readonly Layer[];
  /** "config" of the image's configuration: Entrypoint, Env, … */
  readonly config: Readonly<Record<string, unknown>>;
  /** Seconds since 1970. */
  readonly created: number;
  readonly annotations: Readonly<Record<string, string>>;
}

export interface ImageName {
  /** As runtimes complete it where nobody names a registry: "docker.io/library/pipette". */
  readonly repository: string;
  readonly tag: string;
}

/** All times in a layer are 1970's, so that unchanged content is the same blob in the next release. */
export function layerOf(entries: readonly TarEntry[]): Layer {
  const bytes = tar(entries);
  return { bytes: gzip(bytes), diffId: digestOf(bytes) };
}

/** The files of a layout. Of several images an index is made, so that each machine takes its own by one name. */
export function ociLayout(images: readonly Image[], { repository, tag }: ImageName): readonly TarEntry[] {
  const blobs = new Map<string, Uint8Array>();
  const blob = (mediaType: string, bytes: Uint8Array): Descriptor => {
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return { mediaType, digest, size: bytes.length };
  };
  const described = images.map((image) => manifestOf(image, blob));
  const [only] = described;
  const top =
    only !== undefined && described.length === 1
      ? only
      : blob(types.index, json({ schemaVersion: 2, mediaType: types.index, manifests: described }));
  const names = {
    "io.containerd.image.name": `${repository}:${tag}`,
    "org.opencontainers.image.ref.name": `${repository}:${tag}`,
  };
  const file = (path: string, bytes: Uint8Array): TarEntry => ({ t: "file", path, mode: 0o644, bytes });
  return [
    file("oci-layout", json({ imageLayoutVersion: "1.0.0" })),
    file("index.json", json({ schemaVersion: 2, manifests: [{ ...top, annotations: names }] })),
    ...["blobs/", "blobs/sha256/"].map((path): TarEntry => ({ t: "directory", path, mode: 0o755 })),
    ...[...blobs].map(([digest, bytes]) => file(`blobs/${digest.replace(":", "/")}`, bytes)),
  ];
}

interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly platform?: { readonly os: string; readonly architecture: string };
}

const types = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

function manifestOf(image: Image, blob: (mediaType: string, bytes: Uint8Array) => Descriptor): Descriptor {
  const { os, architecture, layers, annotations } = image;
  const created = new Date(image.created * 1000).toISOString().replace(/\.\d+/, "");
  const config = {
    created,
    os,
    architecture,
    config: { ...image.config, Labels: annotations },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created, created_by: "npm run image" })),
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: types.manifest,
    config: blob(types.config, json(config)),
    layers: layers.map(({ bytes }) => blob(types.layer, bytes)),
    annotations,
  };
  return { ...blob(types.manifest, json(manifest)), platform: { os, architecture } };
}

const json = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

const digestOf = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`;

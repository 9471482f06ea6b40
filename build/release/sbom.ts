import { createHash } from "node:crypto";
import type { DebianPackage } from "../image/debian-files.ts";
import type { Architecture } from "../image/package-source.ts";
import { type Platform, platforms } from "../program.ts";
import type { Component } from "./components.ts";
import type { Executables } from "./executables.ts";
import type { DebianInImage } from "./images.ts";
import type { Version } from "./version.ts";

export interface SbomInputs {
  readonly version: Version;
  readonly executables: Executables;
  /** In every executable: the runtime with what is linked into it, and npm packages. */
  readonly runtime: readonly Component[];
  /** In those that carry the small program. */
  readonly small: readonly Component[];
  readonly packages: readonly Component[];
  /** In the images for Linux besides. */
  readonly debian: readonly DebianInImage[];
}

/** What is in a release, as CycloneDX 1.6 in JSON: https://cyclonedx.org/docs/1.6/json/ */
export function sbomOf({ version, executables, runtime, small, packages, debian }: SbomInputs): string {
  const [bun, ...linked] = runtime.map(ofRuntime);
  const npm = packages.map(ofNpm);
  const own = platforms.flatMap((platform) => {
    const bytes = executables[platform];
    return bytes === undefined ? [] : [ofExecutable(platform, bytes, version)];
  });
  const images = debian.map((found) => ofImage(found, version));
  const inside = [...(bun === undefined ? [] : [{ ...bun, components: linked }]), ...small.map(ofRuntime), ...npm];
  const body = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(version.time * 1000).toISOString().replace(/\.\d+/, ""),
      component: {
        type: "application",
        "bom-ref": "pipette",
        name: "pipette",
        version: version.full,
        licenses: [{ license: { id: "Apache-2.0" } }],
      },
    },
    components: [...own, ...inside, ...images],
    dependencies: [
      { ref: "pipette", dependsOn: [...own, ...images].map((component) => component["bom-ref"]) },
      ...own.map((program) => ({ ref: program["bom-ref"], dependsOn: inside.map((part) => part["bom-ref"]) })),
      ...images.map(({ "bom-ref": ref, components }) => ({
        ref,
        dependsOn: [
          ...own.map((program) => program["bom-ref"]).filter((name) => ref === imageWith[name]),
          ...components.map((part) => part["bom-ref"]),
        ],
      })),
    ],
  };
  return `${JSON.stringify({ ...body, serialNumber: `urn:uuid:${uuidOf(JSON.stringify(body))}` }, undefined, 1)}\n`;
}

const refOf = ({ image, architecture }: Pick<DebianInImage, "image" | "architecture">): string =>
  `image-${image}-linux-${architecture}`;

/** By the executable; Open vSwitch's has nothing of ours. */
const imageWith: Readonly<Record<string, string>> = {
  "executable-linux-x64": refOf({ image: "pipette", architecture: "amd64" }),
  "executable-linux-arm64": refOf({ image: "pipette", architecture: "arm64" }),
};

function ofImage(found: DebianInImage, version: Version) {
  const ref = refOf(found);
  return {
    type: "container",
    "bom-ref": ref,
    name: `${found.image}, image for linux/${found.architecture}`,
    version: version.full,
    components: found.packages.map((each) => ofDebian(each, found.architecture, ref)),
  };
}

const ofExecutable = (platform: Platform, bytes: Uint8Array, version: Version) => ({
  type: "file",
  "bom-ref": `executable-${platform}`,
  name: `pipette, executable for ${platform}`,
  version: version.full,
  hashes: [{ alg: "SHA-256", content: createHash("sha256").update(bytes).digest("hex") }],
});

const ofRuntime = ({ name, version, licence, source }: Component) => ({
  type: name === "Bun" ? "platform" : "library",
  "bom-ref": `runtime-${name.replaceAll(/\W+/g, "-")}`,
  name,
  version,
  licenses: [licenceOf(licence)],
  ...(name === "Bun" ? { purl: `pkg:npm/bun@${version}` } : {}),
  externalReferences: [{ type: "distribution", url: source }],
});

const ofNpm = ({ name, version, licence, source }: Component) => {
  const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
  return {
    type: "library",
    "bom-ref": purl,
    name,
    version,
    licenses: [licenceOf(licence)],
    purl,
    externalReferences: [{ type: "distribution", url: source }],
  };
};

/** @param image which it is in: a package may be in several, and each mention has a name of its own */
const ofDebian = ({ name, version, source }: DebianPackage, architecture: Architecture, image: string) => {
  const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`;
  return {
    type: "library",
    "bom-ref": `${image}/${purl}`,
    name,
    version,
    purl,
    properties: [{ name: "debian:source", value: source }],
  };
};

const licenceOf = (spdx: string) => (/ (AND|OR|WITH) /.test(spdx) ? { expression: spdx } : { license: { id: spdx } });

/** Of the content, so that the same release has the same: a UUID of version 5's form. */
function uuidOf(content: string): string {
  const hex = createHash("sha256").update(content).digest("hex");
  const variant = ((Number.parseInt(hex.slice(16, 17), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `5${hex.slice(13, 16)}`,
    variant + hex.slice(17, 20),
    hex.slice(20, 32),
  ].join("-");
}

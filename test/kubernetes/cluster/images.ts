import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TarEntry } from "../../../shared/archive/tar.ts";
import { image } from "../../clients/images.ts";
import { executables } from "../../conformance/plugin.ts";
import { kubernetesProgram } from "../assets.ts";

/** Serves and probes: one static program of Kubernetes' own tests. */
export const agnhostImage = "pipette.test/agnhost:1";
/** The name that the manifests of conf/kubernetes have. */
export const pipetteImage = "docker.io/library/pipette:0.1.0";

/** Both, as archives that `ctr` imports. @returns their paths */
export function makeClusterImages(directory: string): readonly string[] {
  const agnhost = image(agnhostImage, [fileOf("agnhost", kubernetesProgram("agnhost"))], ["/agnhost"]);
  const pipette = imageOfPipette(pipetteImage, executables);
  return Object.entries({ agnhost, pipette }).map(([name, bytes]) => {
    const path = join(directory, `${name}.tar`);
    writeFileSync(path, bytes);
    return path;
  });
}

/** @param directory of the executable */
export const imageOfPipette = (name: string, directory: string): Uint8Array =>
  image(name, pipetteFiles(join(directory, "pipette")), ["/pipette"]);

const fileOf = (path: string, from: string): TarEntry => ({
  t: "file",
  path,
  mode: 0o755,
  bytes: readFileSync(from),
});

/** The executable, `nft`, and this machine's libraries of both. */
function pipetteFiles(executable: string): readonly TarEntry[] {
  const nft = "/usr/sbin/nft";
  const needed = execFileSync("ldd", [executable, nft], { encoding: "utf8" });
  const libraries = new Set([...needed.matchAll(/(?:=> )?(\/lib\S+) \(/g)].map(([, path = ""]) => path));
  return [
    fileOf("pipette", executable),
    { t: "link", path: "bin/pipette", link: "/pipette" },
    fileOf("bin/nft", nft),
    ...[...libraries].map((path) => fileOf(path.slice(1), realpathSync(path))),
  ];
}

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type TarEntry, tar } from "../../shared/archive/tar.ts";
import { gzip } from "../archive/deflate.ts";
import type { Version } from "./version.ts";

const chartDirectory = "conf/chart/pipette";

/**
 * The chart as `helm package` would make it, but without the time of day; its version and that of the images that it
 * names are the release's. `undefined` where there is no chart.
 */
export function chartPackage(root: string, version: Version): Uint8Array<ArrayBuffer> | undefined {
  const directory = join(root, chartDirectory);
  if (!existsSync(directory)) return undefined;
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" }).sort();
  const files = paths.filter((path) => statSync(join(directory, path)).isFile());
  const entries = files.map((path): TarEntry => {
    const bytes = readFileSync(join(directory, path));
    const released = path === "Chart.yaml" ? Buffer.from(withVersion(bytes.toString(), version)) : bytes;
    return { t: "file", path: `pipette/${path}`, mode: 0o644, bytes: released };
  });
  return gzip(tar(entries, version.time));
}

function withVersion(text: string, { full, tag }: Version): string {
  const values = { version: full, appVersion: tag };
  return Object.entries(values).reduce((changed, [key, value]) => {
    const line = new RegExp(`^${key}:.*$`, "m");
    if (!line.test(changed)) throw new Error(`Cannot package the chart: Chart.yaml has no "${key}"`);
    return changed.replace(line, `${key}: ${JSON.stringify(value)}`);
  }, text);
}

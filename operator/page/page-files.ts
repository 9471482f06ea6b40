import type { PageFile } from "./bundle-page.ts";

/**
 * The files of the page. The build puts another module in the place of this one, which has them in it
 * (build/bundle.ts); sources bundle them when they are wanted.
 */
export async function pageFiles(): Promise<readonly PageFile[]> {
  return (await (await import("./bundle-page.ts")).bundlePage()).files;
}

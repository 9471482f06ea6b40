import { readFileSync } from "node:fs";

/** The only block of shell commands in a page of docs/ in which `words` stand. */
export function shellBlock(page: string, words: string): string {
  const text = readFileSync(new URL(`../../../docs/${page}`, import.meta.url), "utf8");
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = ""]) => block);
  const [found, other] = blocks.filter((block) => block.includes(words));
  if (found === undefined || other !== undefined)
    throw new Error(`"${words}" stands in ${found === undefined ? "no block" : "several blocks"} of docs/${page}`);
  return found;
}

import { measureAllocate } from "./measures/allocate.ts";
import { measurePods } from "./measures/pod.ts";
import { measureStart } from "./measures/start.ts";
import type { Row } from "./row.ts";
import type { Setting } from "./setting.ts";

/** Every budget of the design, in one run. */
export async function measureAll(setting: Setting): Promise<Row[]> {
  return [...(await measureStart(setting)), ...(await measureAllocate(setting)), ...(await measurePods(setting))];
}

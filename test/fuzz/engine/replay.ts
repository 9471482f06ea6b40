import { readFileSync } from "node:fs";
import { loadTarget } from "../targets/all.ts";
import { Judge } from "./judge.ts";

/** Gives one kept input in again and says what it does. @returns the exit status */
export async function replay(name: string, file: string): Promise<number> {
  const opened = await (await loadTarget(name)).open();
  const wrong = await new Judge((bytes) => opened.run(bytes)).judge(new Uint8Array(readFileSync(file)));
  await opened.close?.();
  console.log(wrong === undefined ? "Taken, or refused in the words of its boundary" : `DEFECT ${wrong.why}`);
  return wrong === undefined ? 0 : 1;
}

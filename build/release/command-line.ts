import { parseArgs } from "node:util";
import { reasonOf } from "../../shared/reason.ts";
import { type Platform, platforms } from "../program.ts";

/** What `npm run image` and `npm run package` are told. */
export interface Wish {
  readonly platforms: readonly Platform[];
  /** Of images: what stands before the ":" and behind it. */
  readonly name: string;
  readonly tag: string | undefined;
}

/** Reports an argument that cannot be understood, and exits. */
export function wishOf(args: readonly string[]): Wish {
  try {
    return parseWish(args);
  } catch (caught) {
    console.error(reasonOf(caught));
    process.exit(2);
  }
}

function parseWish(args: readonly string[]): Wish {
  const { values } = parseArgs({
    args: [...args],
    options: {
      platform: { type: "string", multiple: true, default: [...platforms] },
      name: { type: "string", default: "pipette" },
      tag: { type: "string" },
    },
  });
  const unknown = values.platform.find((name) => !platforms.includes(name as Platform));
  if (unknown !== undefined)
    throw new Error(`Cannot make that: the platform is "${unknown}", wanted one of ${platforms.join(", ")}`);
  return {
    platforms: platforms.filter((platform) => values.platform.includes(platform)),
    name: values.name,
    tag: values.tag,
  };
}

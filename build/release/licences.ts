import { readFileSync } from "node:fs";
import { join } from "node:path";
import { bundledPackages, type Component, runtimeComponents, smallProgramComponents } from "./components.ts";

/** The texts that go with every executable, by name of file: our licence, and whose work is in it besides. */
export async function licenceTexts(root: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const packages = await bundledPackages(root, join(root, "main.ts"));
  return new Map([
    ["LICENSE", readFileSync(join(root, "LICENSE"))],
    ["THIRD-PARTY.txt", Buffer.from(thirdParty(packages, runtimeComponents(), smallProgramComponents()))],
  ]);
}

/** The same as one text, which the executable carries and `pipette version --licenses` prints. */
export async function licencesInExecutable(root: string): Promise<string> {
  const texts = [...(await licenceTexts(root)).values()];
  return texts.map((bytes) => Buffer.from(bytes).toString("utf8").trim()).join("\n\n\n");
}

const line = ({ name, version, licence, source }: Component): string =>
  `${`${name} ${version}`.padEnd(64)} ${licence.padEnd(36)} ${source}\n`;

function thirdParty(
  packages: readonly Component[],
  runtime: readonly Component[],
  small: readonly Component[],
): string {
  return `What is in Pipette's executables besides Pipette itself.

The runtime, and what is linked into it:

${runtime.map(line).join("")}
JavaScriptCore is under the LGPL: its sources as Bun has them, and how to link Bun with others, are at
https://github.com/oven-sh/WebKit and in LICENSE.md of https://github.com/oven-sh/bun. Pipette's own sources and
"npm run build" make the executable anew with such a Bun. SQLite is in the public domain.

The images for Linux hold packages of Debian too; their licences are in them, below /usr/share/doc and
/usr/share/common-licenses, and their sources are Debian's source packages of the versions that sbom.cdx.json names.

${thirdPartyOfPackages(packages)}${small.length === 0 ? "" : ofSmallProgram(small)}`;
}

/** Debian's texts name every author of a library, also of what is not linked into so small a program. */
function ofSmallProgram(components: readonly Component[]): string {
  const texts = components.map(({ name, text }) => (text === undefined ? "" : `\n==== ${name}\n\n${text.trim()}\n`));
  return `

The small program in front (forward/), which the executables for x64 carry, is linked with the C library of its system:

${components.map(line).join("")}${texts.join("")}`;
}

/** The packages and the texts of their licences. */
export function thirdPartyOfPackages(packages: readonly Component[]): string {
  const texts = packages.map(({ name, text }) => (text === undefined ? "" : `\n---- ${name}\n\n${text.trim()}\n`));
  return `npm packages in the program:

${packages.map(line).join("")}
Texts of their licences:
${texts.join("")}`;
}

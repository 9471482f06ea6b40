import { execFileSync } from "node:child_process";
import { type Field, inUsr, type PackageSource } from "./package-source.ts";

export const machineArchitecture = (): string => output("dpkg", "--print-architecture").trim();

/** As dpkg-query writes them: the source's name alone, without the version that may stand behind it. */
const formats: Readonly<Record<Field, string>> = {
  Version: "Version",
  Section: "Section",
  "Pre-Depends": "Pre-Depends",
  Depends: "Depends",
  Source: "source:Package",
};

/** What dpkg has installed on this machine. */
export class InstalledPackages implements PackageSource {
  /** By their names; asked for all at once, as each question costs a process. */
  readonly #fields = new Map<string, ReadonlyMap<string, string>>();

  constructor() {
    const fields = Object.keys(formats);
    const asked = ["db:Status-Status", "Package", ...Object.values(formats)].map((name) => `\${${name}}`).join("\\t");
    for (const line of output("dpkg-query", "-W", "-f", `${asked}\\n`).split("\n")) {
      const [status, name = "", ...values] = line.split("\t");
      if (status === "installed") this.#fields.set(name, new Map(fields.map((field, i) => [field, values[i] ?? ""])));
    }
  }

  field(name: string, field: Field): string | undefined {
    return this.#fields.get(name)?.get(field);
  }

  unpack(names: readonly string[]): ReturnType<PackageSource["unpack"]> {
    return new Map(
      names.map((name) => [name, { root: "/", paths: output("dpkg-query", "-L", name).trim().split("\n") }]),
    );
  }

  verify(names: readonly string[], taken: readonly string[]): void {
    const changed = output("dpkg", "--verify", ...names).split("\n");
    for (const line of changed) {
      const path = inUsr(line.replace(/^.*? \//, ""));
      if (taken.includes(path))
        throw new Error(`Cannot take "/${path}" into the image: it is not as its package has it`);
    }
  }
}

const output = (file: string, ...args: readonly string[]): string =>
  execFileSync(file, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });

import { execFileSync } from "node:child_process";
import { type Field, inUsr, type PackageSource } from "./package-source.ts";

export const machineArchitecture = (): string => output("dpkg", "--print-architecture").trim();

/** What dpkg has installed on this machine. */
export class InstalledPackages implements PackageSource {
  field(name: string, field: Field): string | undefined {
    // The name alone: dpkg puts the version behind it where it is another one.
    const format = `\${db:Status-Status}\n\${${field === "Source" ? "source:Package" : field}}`;
    const [status, value] = (answer("dpkg-query", "-W", "-f", format, name) ?? "").split("\n");
    return status === "installed" ? value : undefined;
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
        throw new Error(`Cannot take "/${path}" into the image: it is not as its package has it, wanted it unchanged`);
    }
  }
}

const output = (file: string, ...args: readonly string[]): string =>
  execFileSync(file, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 26 });

/** The same, and `undefined` where it fails. */
function answer(file: string, ...args: readonly string[]): string | undefined {
  try {
    return output(file, ...args);
  } catch {
    return undefined;
  }
}

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Architecture, Field, PackageSource } from "./package-source.ts";

/** The packages that apt offers for an architecture, from this machine's own sources; nothing is installed. */
export class AptRoot implements PackageSource {
  readonly #directory: string;
  readonly #env: Readonly<Record<string, string | undefined>>;
  /** The control fields of each package by name, in the version that apt would install. */
  #offered: ReadonlyMap<string, string> | undefined;

  /**
   * @param directory for its own use: it is emptied, so that no old lists are used
   * @throws where apt reaches none of its sources
   */
  constructor(architecture: Architecture, directory: string) {
    this.#directory = directory;
    rmSync(directory, { recursive: true, force: true });
    for (const name of ["state/lists/partial", "archives", "unpacked"]) mkdirSync(this.#at(name), { recursive: true });
    writeFileSync(this.#at("status"), "");
    const settings = {
      "APT::Architecture": architecture,
      "APT::Architectures": architecture,
      "Dir::State": this.#at("state"),
      "Dir::State::status": this.#at("status"),
      "Dir::Cache": this.#at("."),
      "APT::Sandbox::User": "root",
      // Otherwise lists that could not be fetched would only cause a warning.
      "APT::Update::Error-Mode": "any",
    };
    const lines = Object.entries(settings).map(([key, value]) => `${key} "${value}";\n`);
    writeFileSync(this.#at("apt.conf"), lines.join(""));
    this.#env = { ...process.env, APT_CONFIG: this.#at("apt.conf"), DEBIAN_FRONTEND: "noninteractive", LC_ALL: "C" };
    this.#run("apt-get", ["-qq", "update"]);
  }

  field(name: string, field: Field): string | undefined {
    this.#offered ??= paragraphs(this.#run("apt-cache", ["dumpavail"]));
    const text = this.#offered.get(name);
    if (text === undefined) return undefined;
    const value = new RegExp(`^${field}: (.*)$`, "m").exec(text)?.[1] ?? "";
    if (field !== "Source") return value;
    // Absent where it has the package's own name; a version stands behind it where that is another one.
    return value.replace(/ .*/, "") || name;
  }

  unpack(names: readonly string[]): ReturnType<PackageSource["unpack"]> {
    const archives = this.#at("archives");
    this.#run("apt-get", ["-qq", "download", ...names], archives);
    return new Map(
      readdirSync(archives).map((file) => {
        const [name = ""] = file.split("_");
        const root = join(this.#directory, "unpacked", name);
        this.#run("dpkg-deb", ["-x", join(archives, file), root]);
        return [
          name,
          { root, paths: readdirSync(root, { recursive: true, encoding: "utf8" }).map((path) => `/${path}`) },
        ];
      }),
    );
  }

  /** apt has compared what it fetched with what Debian has signed. */
  verify(): void {}

  #at(name: string): string {
    return join(this.#directory, name);
  }

  #run(file: string, args: readonly string[], cwd = this.#directory): string {
    return execFileSync(file, args, {
      cwd,
      env: this.#env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 1 << 29,
    });
  }
}

const paragraphs = (text: string): ReadonlyMap<string, string> =>
  new Map(text.split("\n\n").map((each) => [/^Package: (.*)$/m.exec(each)?.[1] ?? "", each]));

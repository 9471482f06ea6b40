import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { writeAtomically } from "../../shared/os/atomic-file.ts";
import { readSmallFile } from "../../shared/os/plain-file.ts";
import { privateKeyFile } from "../config/certificates-config.ts";
import type { Pair } from "./pair-check.ts";

const files = { certificate: "certificate.pem", privateKey: privateKeyFile, ca: "ca.pem" } as const;
/** Of each of these files: a bundle of authorities is the longest. */
export const maxFileBytes = 256 * 1024;
const currentName = "current";
const directoryShape = /^[0-9a-f]{20}$/;

/**
 * Pairs on the disk, each in a directory of its own, and a file that names the one that counts: whoever is killed leaves
 * the old pair or the new one, and never the key of one with the certificate of the other. What is replaced stays for
 * one more change, since strongSwan may still read it.
 */
export class PairStore {
  readonly #directory: string;

  /** @param directory of the agent alone */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /** `undefined` where there is none that is whole. */
  read(): Pair | undefined {
    const name = this.#current();
    if (name === undefined) return undefined;
    const text = (file: string): string => readSmallFile(join(this.#directory, name, file), maxFileBytes);
    try {
      return { certificate: text(files.certificate), privateKey: text(files.privateKey), ca: text(files.ca) };
    } catch {
      return undefined;
    }
  }

  /** Where the pair stands that `read` answers. */
  get paths(): Readonly<Record<keyof Pair, string>> {
    const at = (file: string): string => join(this.#directory, this.#current() ?? "none", file);
    return { certificate: at(files.certificate), privateKey: at(files.privateKey), ca: at(files.ca) };
  }

  /** Makes it the one that counts. @throws {CniError} code 5 */
  put(pair: Pair): void {
    const name = createHash("sha256").update(pair.certificate).update("\0").update(pair.ca).digest("hex").slice(0, 20);
    const before = this.#current();
    const directory = join(this.#directory, name);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    for (const [part, file] of Object.entries(files)) writeAtomically(join(directory, file), pair[part as keyof Pair]);
    writeAtomically(join(this.#directory, currentName), `${name}\n`);
    for (const entry of readdirSync(this.#directory))
      if (directoryShape.test(entry) && entry !== name && entry !== before)
        rmSync(join(this.#directory, entry), { recursive: true, force: true });
  }

  #current(): string | undefined {
    try {
      const name = readSmallFile(join(this.#directory, currentName), 64).trim();
      return directoryShape.test(name) ? name : undefined;
    } catch {
      return undefined;
    }
  }
}

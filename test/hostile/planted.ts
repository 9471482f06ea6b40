import { execFileSync } from "node:child_process";
import { chownSync, linkSync, lstatSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";

/** Whoever is nobody on this node. */
export const stranger = 65534;

/** What another user may have put at a place before us. Each gets a file of somebody else's, which must stay as it is. */
export const plants = {
  /** A link to it. */
  link: (path: string, victim: string): void => symlinkSync(victim, path),
  /** The same where nothing is yet, so that something would be made there. */
  "link to nothing": (path: string, victim: string): void => symlinkSync(`${victim}.made`, path),
  /** A second name of it. */
  "hard link": (path: string, victim: string): void => linkSync(victim, path),
  /** That nobody writes to, or reads from. */
  pipe: (path: string): void => void execFileSync("mkfifo", [path]),
  /** A file that its owner can read and change. */
  "file of another": (path: string): void => {
    writeFileSync(path, "");
    chownSync(path, stranger, stranger);
  },
} as const;

export type Plant = keyof typeof plants;

/** A file of the system: what is in it, whose it is, and who may do what. */
export class Victim {
  readonly path: string;
  readonly #before: string;

  constructor(path: string) {
    this.path = path;
    writeFileSync(path, "root:*:19000:0:99999:7:::\n", { mode: 0o640 });
    this.#before = this.#now();
  }

  /** What has become of it; empty where nothing has. */
  harm(): readonly string[] {
    const made = lstatSync(`${this.path}.made`, { throwIfNoEntry: false }) === undefined ? [] : ["another was made"];
    const now = this.#now();
    return now === this.#before ? made : [...made, `it was ${this.#before}, and is ${now}`];
  }

  #now(): string {
    const { mode, uid, gid } = statSync(this.path);
    return `${mode.toString(8)} ${uid}:${gid} ${readFileSync(this.path, "utf8")}`;
  }
}

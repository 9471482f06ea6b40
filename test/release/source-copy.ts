import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** What a commit's name is made of besides its files: with it two histories of the same files are the same. */
const someone = {
  GIT_AUTHOR_NAME: "Somebody",
  GIT_AUTHOR_EMAIL: "somebody@example.org",
  GIT_AUTHOR_DATE: "2026-01-02T03:04:05Z",
  GIT_COMMITTER_NAME: "Somebody",
  GIT_COMMITTER_EMAIL: "somebody@example.org",
  GIT_COMMITTER_DATE: "2026-01-02T03:04:05Z",
  GIT_CONFIG_GLOBAL: "/dev/null",
};
export const commitTime = Date.parse(someone.GIT_COMMITTER_DATE) / 1000;

/** The sources in another place, with a history of one commit and npm's packages. */
export class SourceCopy {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  static async make(directory: string): Promise<SourceCopy> {
    const listed = await execa("git", ["-C", root, "ls-files", "-co", "--exclude-standard"]);
    for (const path of listed.stdout.split("\n")) {
      const to = join(directory, path);
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(join(root, path), to);
    }
    await execa("cp", ["-al", join(root, "node_modules"), directory]);
    const copy = new SourceCopy(directory);
    await copy.git("init", "--quiet");
    await copy.git("add", ".");
    await copy.git("commit", "--quiet", "--message", "Everything");
    return copy;
  }

  async git(...args: readonly string[]): Promise<string> {
    return (await execa("git", ["-C", this.directory, ...args], { env: someone })).stdout;
  }

  /** Runs a script of build/ with Bun. */
  async build(script: string, ...args: readonly string[]): Promise<string> {
    const { stdout } = await execa(process.execPath, ["run", `build/${script}`, ...args], { cwd: this.directory });
    return stdout;
  }
}

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { madeOnce } from "../support/made-once.ts";
import type { Need } from "../support/requires.ts";

/** Go programs against the proto file's text, made with Debian's packages alone: no module is ever downloaded. */

const here = new URL(".", import.meta.url).pathname;
const root = join(here, "../..");
const protoFolder = join(root, "shared/proto");
/** Proto files, and the Go packages that are made of them. */
const generated = [
  ["cni.proto", "cnipb"],
  ["pipette.proto", "pipettepb"],
] as const;
const programs = ["client", "server", "headers", "ipam"] as const;

/** Debian's own compiler, whatever else the PATH may have: its grpc package is of the same age. */
const compiler = globSync("/usr/lib/go-*/bin/go").sort().at(-1) ?? "/usr/bin/go";
const sources = "/usr/share/gocode";

/** What these programs need of the machine. */
export const goNeeds: readonly Need[] = ["go", "go-grpc", "go-protobuf", "protoc", "proto-files"];

export type GoPrograms = Readonly<Record<(typeof programs)[number], string>>;

/** Compiles the programs, once for each state of their sources and for all test files, and answers where they are. */
export async function compileGoPrograms(): Promise<GoPrograms> {
  const folder = join(root, "node_modules/.cache/pipette-interop", sourceHash());
  const paths = Object.fromEntries(programs.map((name) => [name, join(folder, name)])) as GoPrograms;
  await madeOnce(folder, async (making) => {
    const scratch = `${making}-scratch`;
    rmSync(scratch, { recursive: true, force: true });
    try {
      compileIn(scratch);
      renameSync(join(scratch, "bin"), making);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  });
  return paths;
}

function compileIn(scratch: string): void {
  const source = join(scratch, "src/interop");
  cpSync(join(here, "go"), source, { recursive: true });
  for (const [proto, name] of generated) {
    mkdirSync(join(source, name));
    const options = `plugins=grpc,import_path=${name},Mgoogle/protobuf/any.proto=github.com/golang/protobuf/ptypes/any`;
    const out = `--go_out=${options}:${join(source, name)}`;
    run("/usr/bin/protoc", ["-I", protoFolder, "-I", "/usr/include", out, proto], {});
  }
  const bin = join(scratch, "bin");
  mkdirSync(bin);
  run(compiler, ["build", "-o", `${bin}/`, ...programs.map((name) => `interop/${name}`)], {
    GO111MODULE: "off",
    GOPATH: `${scratch}:${sources}`,
    GOCACHE: join(scratch, "cache"),
    GOFLAGS: "",
    GOPROXY: "off",
    CGO_ENABLED: "0",
  });
}

function run(command: string, args: readonly string[], env: Readonly<Record<string, string>>): void {
  execFileSync(command, args, { env: { PATH: "/usr/bin:/bin", ...env }, stdio: ["ignore", "ignore", "pipe"] });
}

function sourceHash(): string {
  const hash = createHash("sha256").update(compiler);
  const files = globSync("go/*/*.go", { cwd: here }).sort();
  for (const path of [
    ...files.map((file) => join(here, file)),
    ...generated.map(([proto]) => join(protoFolder, proto)),
    import.meta.filename,
  ])
    hash.update(readFileSync(path)).update("\0");
  return hash.digest("hex").slice(0, 16);
}

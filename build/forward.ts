import { execFile } from "node:child_process";
import { accessSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { smallMark } from "../agent/commands/install/executable-marks.ts";
import { latestVersion, supportedVersions } from "../shared/cni/versions.ts";
import { linuxPaths } from "../shared/os/paths.linux.ts";
import { windowsPaths } from "../shared/os/paths.windows.ts";

/** Compiles the small program of `forward/`, for the build and for tests. */

const directory = join(dirname(dirname(fileURLToPath(import.meta.url))), "forward");

export type System = "linux" | "windows";

/** Constants that are compiled into the small program. */
export interface Places {
  readonly agentSocket: string;
  readonly ipamSocket: string;
  readonly wholeProgram: string;
}

const defaultPlaces: Readonly<Record<System, Places>> = { linux: linuxPaths, windows: windowsPaths };

export interface SmallProgram {
  readonly system: System;
  readonly outfile: string;
  /** The id of the whole program that it belongs to: 32 hexadecimal digits. */
  readonly buildId: string;
  /** Absent: those of an installed Pipette. */
  readonly places?: Places;
  /** With AddressSanitizer and UndefinedBehaviorSanitizer, for tests; on Linux only. */
  readonly sanitized?: boolean;
}

/** Each warning is an error; conversions are written out. */
const warnings = [
  ..."-std=c11 -Wall -Wextra -Wpedantic -Werror -Wconversion -Wsign-conversion -Wshadow -Wformat=2 -Wundef".split(" "),
  ..."-Wstrict-prototypes -Wmissing-prototypes -Wvla -Wcast-align -Wcast-qual -Wwrite-strings".split(" "),
  ..."-Wnull-dereference -Wswitch-enum -Wimplicit-fallthrough".split(" "),
];
const hardened = "-O2 -fstack-clash-protection -fcf-protection=full".split(" ");
/**
 * Not for Windows: mingw initialises the guard by a library of its own, which costs more than the rest of the start.
 */
const guarded = "-fstack-protector-strong";
const sanitizers = "-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer".split(" ");

/**
 * Of the Debian package musl-tools, whose compiler does not know -static-pie by itself. Constants lie beside the code: a
 * process of its own mappings and first touches would cost each call two more of both.
 */
const musl = "/usr/lib/x86_64-linux-musl";
const staticPie = [
  ..."-fPIE -static -nostartfiles -s".split(" "),
  ...["rcrt1.o", "crti.o", "crtn.o"].map((name) => `${musl}/${name}`),
  "-Wl,-pie,--no-dynamic-linker,-z,noseparate-code,-z,relro,-z,now,-z,noexecstack,-z,text,--build-id=none",
];

const compilers = {
  linux: { program: "/usr/bin/musl-gcc", debianPackage: "musl-tools" },
  windows: { program: "/usr/bin/x86_64-w64-mingw32-gcc", debianPackage: "gcc-mingw-w64-x86-64" },
} as const;

/** Why the small program cannot be compiled for a system here; `undefined` where it can. */
export function whyNoSmallProgram(system: System): string | undefined {
  const { program, debianPackage } = compilers[system];
  try {
    accessSync(program);
    return undefined;
  } catch {
    return `"${program}" is missing (Debian package ${debianPackage})`;
  }
}

/** @throws where the compiler refuses, with what it says */
export async function compileSmallProgram({
  system,
  outfile,
  buildId,
  places = defaultPlaces[system],
  sanitized = false,
}: SmallProgram): Promise<void> {
  const sources = ["forward.c", "answer.c", system === "linux" ? "linux.c" : "windows.c"];
  const how =
    system === "windows"
      ? [
          ...hardened,
          "-municode",
          "-s",
          "-static",
          "-Wl,--nxcompat,--dynamicbase,--high-entropy-va,--no-insert-timestamp",
        ]
      : sanitized
        ? sanitizers
        : [...hardened, guarded, ...staticPie];
  const libraries = system === "windows" ? ["-lntdll"] : [];
  const compiler = sanitized ? "/usr/bin/gcc" : compilers[system].program;
  await compile(compiler, [...how, ...sources.map((name) => join(directory, name)), ...libraries], outfile, {
    buildId,
    places,
  });
}

/** The fuzzing harness that feeds generated streams to the state machine; takes their number and a seed. */
export async function compileFuzzer(outfile: string): Promise<void> {
  const sources = ["fuzz.c", "answer.c"].map((name) => join(directory, name));
  const told = { buildId: "00".repeat(16), places: defaultPlaces.linux };
  await compile("/usr/bin/gcc", [...sanitizers, ...sources], outfile, told);
}

/** Of the Debian packages clang-14 and libclang-rt-14-dev, which nothing else needs. */
export const clang = "/usr/bin/clang-14";

/** The same, guided by libFuzzer, whose options it takes. Needs `clang`. */
export async function compileLedFuzzer(outfile: string): Promise<void> {
  const sources = ["fuzz.c", "answer.c"].map((name) => join(directory, name));
  const told = { buildId: "00".repeat(16), places: defaultPlaces.linux };
  await compile(clang, [...sanitizers, "-fsanitize=fuzzer", "-DPIPETTE_LIBFUZZER", ...sources], outfile, told);
}

async function compile(
  compiler: string,
  given: readonly string[],
  outfile: string,
  { buildId, places }: Pick<Required<SmallProgram>, "buildId" | "places">,
): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "pipette-forward-"));
  try {
    const header = join(scratch, "build.h");
    writeFileSync(header, headerOf(buildId, places));
    const same = [`-ffile-prefix-map=${directory}=forward`, `-ffile-prefix-map=${scratch}=build`];
    await promisify(execFile)(compiler, [...warnings, ...same, "-include", header, "-o", outfile, ...given]);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * Generates the header with constants that the sources share with the rest of Pipette, so that each is defined only
 * once.
 */
function headerOf(buildId: string, { agentSocket, ipamSocket, wholeProgram }: Places): string {
  const bytes = buildId.match(/../g)?.map((byte) => `0x${byte}`) ?? [];
  // A JSON string is a valid C string too, as long as it is printable ASCII.
  const answer = `{"cniVersion":"?","supportedVersions":${JSON.stringify(supportedVersions)}}\n`;
  const [before, after] = answer.split("?").map((part) => JSON.stringify(part));
  return [
    `#define PIPETTE_BUILD_ID {${bytes.join(",")}}`,
    `#define PIPETTE_MARK ${JSON.stringify(smallMark())}`,
    `#define PIPETTE_AGENT_SOCKET ${JSON.stringify(agentSocket)}`,
    `#define PIPETTE_IPAM_SOCKET ${JSON.stringify(ipamSocket)}`,
    `#define PIPETTE_WHOLE_PROGRAM ${JSON.stringify(wholeProgram)}`,
    `#define PIPETTE_LATEST_VERSION ${JSON.stringify(latestVersion)}`,
    `#define PIPETTE_VERSION_ANSWER(version) ${before} version ${after}`,
    `#define PIPETTE_EACH_VERSION(EACH) ${supportedVersions.map((version) => `EACH("${version}")`).join(" ")}`,
    "",
  ].join("\n");
}

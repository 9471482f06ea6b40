/**
 * Disables Bun's own environment variables in the executables: variables that a runtime passes to its plugins, or a
 * drop-in to a service, must not open a debugger or run a file as root. Bun has no option for that, so the names are
 * removed from the compiled program.
 */

/**
 * Variables that Bun acts on, except numbers for its timers and garbage collection: those that run code, turn the
 * program into Bun itself, listen, connect, write files, or end the process.
 */
export const sealedVariables = [
  "BUN_OPTIONS",
  "BUN_BE_BUN",
  "BUN_INSPECT",
  "BUN_INSPECT_CONNECT_TO",
  "BUN_BYTECODE_ORDER_OUT",
  "BUN_BYTECODE_DIGEST_OUT",
  "BUN_FEATURE_FLAG_NO_ORPHANS",
  "SIMDUTF_FORCE_IMPLEMENTATION",
] as const;

/** All options of the engine, for messages. */
const engineOptions = "BUN_JSC_*";

export type Processor = "x64" | "arm64";

/** What only some processors' executables know. */
const knownOnlyOn: Readonly<Record<string, Processor>> = { SIMDUTF_FORCE_IMPLEMENTATION: "x64" };

/**
 * Changes the program in place, so that it does not find these variables any more.
 * @throws {Error} where a name is not there exactly once: another Bun than the one that this was made for
 */
export function seal(program: Buffer, processor: Processor): void {
  for (const name of sealedVariables) {
    const places = placesOf(program, Buffer.from(`${name}\0`));
    if (places.length === 0 && (knownOnlyOn[name] ?? processor) !== processor) continue;
    // A zero as first byte matches no variable, since entries of an environment contain no zero bytes. Only the first
    // byte is changed, because the linker lets shorter names, such as "OPTIONS", share the end of longer ones.
    program[only(name, places)] = 0;
  }
  const { comparisonsOf, jumpAlways } = processor === "x64" ? x64 : arm64;
  const place = only(engineOptions, comparisonsOf(program));
  program[place] = jumpAlways(program[place]!);
}

function only(name: string, places: readonly number[]): number {
  const [place] = places;
  if (place !== undefined && places.length === 1) return place;
  throw new Error(
    `Cannot take "${name}" out of the executable: it is there ${places.length} times, wanted once; look where Bun ${Bun.version} reads it, and mend build/seal.ts`,
  );
}

function placesOf(program: Buffer, bytes: Buffer): number[] {
  const places: number[] = [];
  for (let at = program.indexOf(bytes); at >= 0; at = program.indexOf(bytes, at + 1)) places.push(at);
  return places;
}

/**
 * Every variable with this prefix is an option of the engine. The prefix is not text in the program but a comparison
 * and a conditional jump for each letter. If the first jump is always taken, no variable matches.
 */
const [firstLetter = 0, ...moreLetters] = Buffer.from("BUN_JSC_");

interface Instructions {
  /** @returns where the bytes of the first jumps are that say when they are taken */
  comparisonsOf(program: Buffer): number[];
  /** That byte, of a jump that is taken always. */
  jumpAlways(jump: number): number;
}

/** `cmp byte [name + i], letter` and `jne next`, seven or six bytes after the one before. */
const x64: Instructions = {
  comparisonsOf(program) {
    const jumpIfNotEqual = 0x75;
    const comparesWith = (begin: number): boolean => {
      let at = begin;
      for (const letter of moreLetters) {
        const step = [6, 7].find(
          (bytes) => program[at + bytes] === letter && program[at + bytes + 1] === jumpIfNotEqual,
        );
        if (step === undefined) return false;
        at += step;
      }
      return true;
    };
    const begins = placesOf(program, Buffer.from([firstLetter, jumpIfNotEqual]));
    return begins.filter(comparesWith).map((begin) => begin + 1);
  },
  // `jmp`, with a distance of one byte as `jne`.
  jumpAlways: () => 0xeb,
};

/** `ldrb w, [name, i]`, `cmp w, letter` and `b.ne next`, of four bytes each. */
const arm64: Instructions = {
  comparisonsOf(program) {
    const step = 12;
    // Of `cmp w, letter` with the letter in bits 10 to 21: the two highest bytes, and the lowest but for the register.
    const compares = (at: number, letter: number): boolean =>
      (program.readUInt32LE(at) & 0xff_ff_fc_1f) >>> 0 === (0x71_00_00_1f | (letter << 10)) >>> 0 &&
      (program.readUInt32LE(at + 4) & 0xff_00_00_1f) >>> 0 === 0x54_00_00_01;
    // The letter's two lowest bits are with the register, the others with the highest two of the value: searched by these.
    const tail = Buffer.from([firstLetter >> 6, 0x71]);
    return placesOf(program, tail)
      .map((place) => place - 2)
      .filter(
        (at) =>
          at % 4 === 0 && at >= 0 && at + moreLetters.length * step + 8 <= program.length && compares(at, firstLetter),
      )
      .filter((at) => moreLetters.every((letter, index) => compares(at + (index + 1) * step, letter)))
      .map((at) => at + 4);
  },
  // The lowest four bits are the condition: "always" in place of "not equal".
  jumpAlways: (jump) => (jump & 0xf0) | 0x0e,
};

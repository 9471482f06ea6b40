/**
 * Bun's own switches in the environment, taken out of the executables: what a runtime hands on to its plugins, or a
 * drop-in to a service, is not to open a debugger or run a file as root. Bun has no option for that, so the names are
 * taken out of the compiled program, where it looks them up.
 */

/**
 * What Bun asks for and acts on, beyond numbers for its timers and its garbage collection: what runs code, turns the
 * program into Bun itself, listens, connects, writes files, or ends the process.
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

/**
 * Changes the program in place: nothing in an environment has these names any more.
 * @throws {Error} where a name is not there exactly once: another Bun than the one that this was made for
 */
export function seal(program: Buffer): void {
  for (const name of sealedVariables) {
    // No entry of an environment has a byte of zero, so none begins with what is left. Its first byte alone: the linker
    // lets shorter names, such as "OPTIONS", share the end of longer ones.
    program[only(name, placesOf(program, Buffer.from(`${name}\0`)))] = 0;
  }
  program[only(engineOptions, comparisonsOf(program))] = jumpAlways;
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

/** x86-64: `jne` and `jmp`, both with a distance of one byte. */
const jumpIfNotEqual = 0x75;
const jumpAlways = 0xeb;

/**
 * Every variable is an option of the engine's whose name begins so. That is no text in the program, but a comparison
 * for each letter: `cmp byte [name + i], letter` and `jne next`, seven or six bytes after the one before. With the first
 * jump taken always no variable is one. @returns where these first jumps are
 */
function comparisonsOf(program: Buffer): number[] {
  const [first = 0, ...rest] = Buffer.from("BUN_JSC_");
  const begins = placesOf(program, Buffer.from([first, jumpIfNotEqual]));
  return begins.filter((begin) => comparesWith(program, begin, rest)).map((begin) => begin + 1);
}

function comparesWith(program: Buffer, begin: number, letters: readonly number[]): boolean {
  let at = begin;
  for (const letter of letters) {
    const step = [6, 7].find((bytes) => program[at + bytes] === letter && program[at + bytes + 1] === jumpIfNotEqual);
    if (step === undefined) return false;
    at += step;
  }
  return true;
}

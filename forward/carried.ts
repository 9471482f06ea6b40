/** Put in by the compiler (build/bundle.ts): the small program, behind a mark of executable-marks.ts. */
declare const carriedProgram: string | undefined;

/**
 * Nobody loads this, so that it costs no start anything: whoever installs an executable, itself or another one, reads it
 * out of the file's bytes. Absent where no compiler for it was at hand.
 */
export const carried: string | undefined = typeof carriedProgram === "undefined" ? undefined : carriedProgram;

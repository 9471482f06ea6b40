/** Defined by the build (build/bundle.ts): the small program, behind a mark of executable-marks.ts. */
declare const carriedProgram: string | undefined;

/**
 * Never loaded, so that it costs nothing at a start: an installation reads it from the executable's bytes. Absent if
 * there was no compiler for it.
 */
export const carried: string | undefined = typeof carriedProgram === "undefined" ? undefined : carriedProgram;

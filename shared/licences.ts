/** Defined by the build (build/bundle.ts): our licence, and those of the runtime and the packages in the executable. */
declare const licencesOfExecutable: string | undefined;

/** Absent when the sources run uncompiled. The text is long, so this file is loaded only when it is needed. */
export const licences: string | undefined =
  typeof licencesOfExecutable === "undefined" ? undefined : licencesOfExecutable;

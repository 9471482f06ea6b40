/** Put in by the compiler (build/bundle.ts): our licence, and those of the runtime and the packages in the executable. */
declare const licencesOfExecutable: string | undefined;

/** Absent where the sources run without having been compiled. Long: loaded only when somebody asks for it. */
export const licences: string | undefined =
  typeof licencesOfExecutable === "undefined" ? undefined : licencesOfExecutable;

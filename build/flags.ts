/** How `bun build` makes an executable of the sources. */
export const compileFlags: readonly string[] = [
  "--compile",
  "--bytecode",
  "--minify",
  // Bytecode alone would make CommonJS, which has no top-level await and starts slower.
  "--format=esm",
  // Without it the `node:` imports of every lazy chunk are hoisted to the start: 2.5 ms for each call.
  "--splitting",
  // A plugin is over before compiled code pays: 0.6 ms of its processor time. An agent's first pods gain as well, a
  // tenth of its time; what runs long is compiled all the same, some calls later.
  "--compile-jit-policy=10",
  // A root plugin runs in the runtime's working directory: nothing there may change what it does.
  "--no-compile-autoload-dotenv",
  "--no-compile-autoload-bunfig",
];

/**
 * A command line that a program of Windows takes apart into these arguments again, by the rules of its C library
 * (learn.microsoft.com/cpp/c-language/parsing-c-command-line-arguments). The program itself is always in quotes: an
 * unquoted path with a blank would let `C:\Program.exe` be run in its place.
 */
export function commandLine(program: string, args: readonly string[]): string {
  return [`"${program}"`, ...args.map(quoted)].join(" ");
}

function quoted(argument: string): string {
  if (argument !== "" && !/[\s"]/.test(argument)) return argument;
  // Backslashes mean themselves, but for those before a quote, the closing one included.
  return `"${argument.replace(/(\\*)"/g, '$1$1\\"').replace(/\\+$/, "$&$&")}"`;
}

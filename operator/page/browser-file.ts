import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isWindows } from "../../shared/os/platform.ts";

/** What opens a file as its user's desktop does. */
const openers = isWindows ? ["explorer.exe"] : ["xdg-open", "open"];

/**
 * Opens the address in the user's browser by a file that leads there: other users of the machine see the arguments of
 * programs, and must not see the token.
 * @param told says that there is no browser
 * @returns takes the file away
 */
export function openInBrowser(url: string, told: (word: string) => void): Disposable {
  const opener = openers.map((name) => Bun.which(name)).find((path) => path !== null);
  if (opener === undefined || opener === null) {
    told("No browser can be opened here: open the address in one\n");
    return { [Symbol.dispose]: () => undefined };
  }
  const directory = mkdtempSync(join(tmpdir(), "pipette-ui-"));
  const file = join(directory, "open.html");
  const text = `<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url=${url}"><title>Pipette</title>\n`;
  writeFileSync(file, text, { mode: 0o600 });
  const child = Bun.spawn([opener, file], { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
  child.unref();
  return { [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }) };
}

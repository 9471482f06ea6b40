import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isObject } from "../../shared/schema/json-fields.ts";

/**
 * The small program of `forward/` in front of the plugins that tests start. Whether it stands there is a choice of the
 * whole run (vitest's project "forwarded" of vitest.config.mts); here, and in the few places that ask, it is carried out.
 */

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const whole = join(root, "dist", "linux-x64");

export const isInFront = process.env["PIPETTE_IN_FRONT"] === "1";

/** Of this run; gone with it. */
export const frontDirectory = join(root, "dist", "in-front");

/** As long as a socket's path can be. */
const maxPathBytes = 107;
const placeholders = {
  agentSocket: "agent-".padEnd(maxPathBytes, "-"),
  ipamSocket: "ipam-".padEnd(maxPathBytes, "-"),
};
type Sockets = Readonly<Record<keyof typeof placeholders, string>>;

/**
 * The small program as it is delivered, in front of this tree's, but for its sockets: every test has its own, and
 * compiling takes longer than most tests. They are put in where these are.
 */
export const template = {
  path: join(frontDirectory, "template"),
  places: { ...placeholders, wholeProgram: join(whole, "pipette") },
};

/** The small program under both names, for servers that listen there. @returns the directory */
export function smallPrograms(sockets: Sockets): string {
  const name = createHash("sha256").update(JSON.stringify(sockets)).digest("hex").slice(0, 16);
  const directory = join(frontDirectory, name);
  if (existsSync(directory)) return directory;
  const bytes = readFileSync(template.path);
  put(bytes, placeholders.agentSocket, sockets.agentSocket);
  put(bytes, placeholders.ipamSocket, sockets.ipamSocket);
  const making = `${directory}.${process.pid}`;
  mkdirSync(making);
  for (const name of ["pipette", "pipette-ipam"]) {
    writeFileSync(join(making, name), bytes);
    chmodSync(join(making, name), 0o755);
  }
  try {
    renameSync(making, directory);
  } catch (caught) {
    // Another test file was quicker.
    rmSync(making, { recursive: true });
    if (!existsSync(directory)) throw caught;
  }
  return directory;
}

function put(bytes: Buffer, placeholder: string, socket: string): void {
  const at = bytes.indexOf(`${placeholder}\0`);
  const isOnce = at >= 0 && bytes.indexOf(placeholder, at + 1) < 0;
  if (!isOnce || Buffer.byteLength(socket) > maxPathBytes)
    throw new Error(`Cannot put the socket "${socket}" into the small program: there is no one place for it`);
  bytes.fill(0, at, at + placeholder.length).write(socket, at);
}

interface Command {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** The same command, of a plugin's call, with the small program where the whole one was, in CNI_PATH as well. */
export function withSmallProgram({ command, env }: Command, stdin: string): Command {
  const file = command.at(-1) ?? "";
  const isOurs = dirname(file) === whole;
  const path = env["CNI_PATH"]?.split(":") ?? [];
  if (env["CNI_COMMAND"] === undefined || (!isOurs && !path.includes(whole))) return { command, env };
  const directory = smallPrograms(socketsFor(stdin));
  return {
    command: isOurs ? command.with(-1, join(directory, basename(file))) : command,
    env: path.includes(whole)
      ? { ...env, CNI_PATH: path.map((one) => (one === whole ? directory : one)).join(":") }
      : env,
  };
}

/** Where the configuration has its agent, and tests those of its data directory. */
function socketsFor(stdin: string): Sockets {
  const conf = read(stdin);
  const ipam = isObject(conf["ipam"]) ? conf["ipam"] : {};
  const dataDir = textOf(ipam["dataDir"]) ?? textOf(conf["dataDir"]) ?? "/nonexistent/data";
  const beside = socketsOf(dataDir);
  return { ...beside, agentSocket: textOf(conf["socket"]) ?? beside.agentSocket };
}

/** Where tests have the servers of a data directory. */
export function socketsOf(dataDir: string): Sockets {
  const beside = (name: string): string => join(dirname(dataDir), "run", name);
  return { agentSocket: beside("cni.sock"), ipamSocket: beside("ipam.sock") };
}

function read(stdin: string): Readonly<Record<string, unknown>> {
  try {
    const conf: unknown = JSON.parse(stdin);
    return isObject(conf) ? conf : {};
  } catch {
    return {};
  }
}

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= 80 ? value : undefined;

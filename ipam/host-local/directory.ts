import { closeSync, constants, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { CniCode, CniError } from "../../shared/errors.ts";
import { formatIp, type Ip, parseIp } from "../../shared/net/ip.ts";
import { reasonOf } from "../../shared/reason.ts";
import { addressOfName, type Holder, lockName, parseHolder, rangeSetOfCursor } from "./lease-file.ts";

/** A file of a host-local directory holds a container id and an interface name. */
export const maxFileBytes = 1024;

/** An address that a host-local directory keeps out of use. */
export interface FoundLease {
  /** Name in the directory. */
  readonly file: string;
  readonly ip: Ip;
  readonly holder: Holder;
  /** Milliseconds since 1970: when the file was written, which is when the address was given out. */
  readonly sinceMs: number;
}

/** A file that could not be understood. */
export interface Unreadable {
  /** Name in the directory. */
  readonly file: string;
  readonly reason: string;
}

/** What a host-local directory holds. */
export interface DirectoryContent {
  readonly leases: readonly FoundLease[];
  /** Per range set the address given out last. */
  readonly cursors: ReadonlyMap<number, Ip>;
  /** Files named after an address whose holder cannot be read: the address is in use by an unknown container. */
  readonly ownerless: readonly Omit<FoundLease, "holder">[];
  readonly unreadable: readonly Unreadable[];
}

/** Entries that are read before other work gets its turn and progress is reported. */
const entriesAtOnce = 500;

/**
 * Reads a whole directory, whose lock the caller holds. Links are not followed, and an unreadable entry does not stop
 * it.
 * @param onEntries gets the number of entries so far and of all
 * @throws {CniError} code 5 where the directory itself cannot be read
 */
export async function readDirectory(
  directory: string,
  onEntries: (done: number, total: number) => void,
): Promise<DirectoryContent> {
  const names = namesIn(directory).filter((name) => name !== lockName);
  const reader = new Reader(directory);
  for (const [i, name] of names.entries()) {
    reader.read(name);
    if ((i + 1) % entriesAtOnce !== 0) continue;
    onEntries(i + 1, names.length);
    // Lets an agent serve other calls meanwhile.
    await Bun.sleep(0);
  }
  onEntries(names.length, names.length);
  return reader;
}

/** @throws {CniError} code 5 naming the directory */
export function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).sort();
  } catch (cause) {
    const is = reasonOf(cause);
    throw new CniError(
      CniCode.io,
      `Cannot read host-local's directory "${directory}": ${is}, wanted a directory that this process may read`,
      { cause },
    );
  }
}

class Reader implements DirectoryContent {
  readonly leases: FoundLease[] = [];
  readonly cursors = new Map<number, Ip>();
  readonly ownerless: Omit<FoundLease, "holder">[] = [];
  readonly unreadable: Unreadable[] = [];
  readonly #directory: string;
  readonly #fileOf = new Map<string, string>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  read(file: string): void {
    const rangeSet = rangeSetOfCursor(file);
    const ip = addressOfName(file);
    if (rangeSet !== undefined) this.#readCursor(file, rangeSet);
    else if (ip !== undefined) this.#readLease(file, ip);
    else this.#refuse(file, 'its name is no address, wanted one, or "last_reserved_ip.N"');
  }

  #readLease(file: string, ip: Ip): void {
    const earlier = this.#fileOf.get(formatIp(ip));
    if (earlier !== undefined) {
      this.#refuse(file, `its name is the same address as that of "${earlier}"`);
      return;
    }
    this.#fileOf.set(formatIp(ip), file);
    const { text, problem, sinceMs } = readSmallFile(`${this.#directory}/${file}`);
    const holder = problem ?? parseHolder(text);
    if (typeof holder !== "string") {
      this.leases.push({ file, ip, holder, sinceMs });
      return;
    }
    this.ownerless.push({ file, ip, sinceMs });
    this.#refuse(file, `${holder}; its address stays out of use`);
  }

  #readCursor(file: string, rangeSet: number): void {
    const { text, problem } = readSmallFile(`${this.#directory}/${file}`);
    // As strict as host-local: what it would not accept is no cursor.
    const ip = parseIp(text);
    if (ip !== undefined) this.cursors.set(rangeSet, ip);
    else this.#refuse(file, problem ?? "its content is no address, wanted the one given out last and nothing else");
  }

  #refuse(file: string, reason: string): void {
    this.unreadable.push({ file, reason });
  }
}

interface SmallFile {
  /** Empty if there is a problem. */
  readonly text: string;
  readonly problem?: string;
  readonly sinceMs: number;
}

const kinds = [
  ["isDirectory", "a directory"],
  ["isFIFO", "a pipe"],
  ["isSocket", "a socket"],
] as const;

const buffer = new Uint8Array(maxFileBytes + 1);

function readSmallFile(path: string): SmallFile {
  const failed = (problem: string): SmallFile => ({ text: "", problem, sinceMs: Date.now() });
  let fd: number;
  try {
    // Windows has neither flag; there both are undefined.
    const careful = (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);
    fd = openSync(path, constants.O_RDONLY | careful);
  } catch (caught) {
    const code = (caught as { code?: unknown }).code;
    if (code === "ELOOP") return failed("it is a symbolic link, wanted a file");
    return failed(`it cannot be opened (${reasonOf(caught)})`);
  }
  try {
    const stat = fstatSync(fd);
    const kind = kinds.find(([is]) => stat[is]())?.[1];
    if (!stat.isFile()) return failed(`it is ${kind ?? "a device"}, wanted a file`);
    const length = readSync(fd, buffer, 0, buffer.length, 0);
    if (length > maxFileBytes)
      return failed(`it is longer than ${maxFileBytes} bytes, wanted a container id and an interface name`);
    return { text: new TextDecoder().decode(buffer.subarray(0, length)), sinceMs: Math.round(stat.mtimeMs) };
  } catch (caught) {
    return failed(`it cannot be read (${reasonOf(caught)})`);
  } finally {
    closeSync(fd);
  }
}

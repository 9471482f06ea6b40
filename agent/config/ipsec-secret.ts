import { readFileSync, statSync } from "node:fs";
import { CniCode, CniError } from "../../shared/errors.ts";
import { reasonOf } from "../../shared/reason.ts";

/** The secret of all nodes by which they know each other. The second one where the agent stands in for Antrea's. */
export const pskVariables = { own: "PIPETTE_IPSEC_PSK", antrea: "ANTREA_IPSEC_PSK" } as const;

export interface PskPlaces {
  /** Absent: the environment. */
  readonly file: string | undefined;
  /** Where the agent listens: at Antrea's socket it also takes Antrea's variable. */
  readonly socket: string;
}

/** What Antrea's manifest ships, and everybody knows. */
const wellKnown = "changeme";
const longest = 256;

/**
 * Reads the secret and takes it out of the environment, so that no program that the agent starts gets it. To be called
 * once. No error contains any of it.
 * @throws {CniError} code 7 where there is none, or one that everybody knows or that no file of strongSwan can hold; 5
 */
export function takePsk({ file, socket }: PskPlaces, env: Record<string, string | undefined>): string {
  const isAntreas = /[/\\]antrea[/\\]/.test(socket);
  const names = [pskVariables.own, ...(isAntreas ? [pskVariables.antrea] : [])];
  const found = names.map((name) => ({ name, secret: env[name] ?? "" }));
  for (const name of Object.values(pskVariables)) delete env[name];
  const given = found.filter(({ secret }) => secret !== "");
  if (file !== undefined && given.length > 0)
    throw refused(`both "ovs.ipsec.pskFile" and the variable "${given[0]?.name}" are there, wanted one of them`);
  if (file !== undefined) return sound(inFile(file), `"${file}"`);
  const [first] = given;
  if (first === undefined)
    throw refused(`the variable "${names.join('" or "')}" is empty or missing, wanted it, or "ovs.ipsec.pskFile"`);
  return sound(first.secret, `the variable "${first.name}"`);
}

function inFile(path: string): string {
  try {
    const { mode } = statSync(path);
    if ((mode & 0o077) !== 0)
      throw refused(`"${path}" can be read by others (mode ${(mode & 0o777).toString(8)}), wanted mode 600`);
    return readFileSync(path, "utf8").replace(/\r?\n$/, "");
  } catch (caught) {
    if (caught instanceof CniError) throw caught;
    throw new CniError(CniCode.io, `Cannot encrypt by IPsec: "${path}" cannot be read: ${reasonOf(caught)}`);
  }
}

function sound(secret: string, where: string): string {
  if (secret === "") throw refused(`${where} is empty, wanted the secret of all nodes`);
  if (secret === wellKnown) throw refused(`${where} holds "${wellKnown}", which everybody knows, wanted a secret`);
  // It goes between quotes into a line of ipsec.secrets.
  if (secret.length > longest || !/^[\x21\x23-\x7e]+$/.test(secret))
    throw refused(
      `${where} holds what ipsec.secrets cannot, wanted at most ${longest} letters, digits and signs of ASCII without quotation marks and blanks`,
    );
  return secret;
}

const refused = (is: string): CniError => new CniError(CniCode.invalidConfig, `Cannot encrypt by IPsec: ${is}`);

import { createPrivateKey, type X509Certificate } from "node:crypto";
import { isIP } from "node:net";
import { issueAuthority, issueServer, type Validity } from "./issue.ts";
import { bundleOf, certificateIn, isKeyOf, type Serving } from "./serving.ts";

/** What is kept of certificates that are made here, in PEM. */
export interface Kept extends Serving {
  /** Of the newest authority, which is the first of `ca`. */
  readonly caKey: string;
}

const dayMs = 24 * 60 * 60_000;
const serverDays = 180;
/** Longer than the server's by so much that it is renewed while all servers' certificates of the old one still hold. */
const authorityDays = 6 * serverDays;
/** Clocks of clients may be behind. */
const earlierMs = 60 * 60_000;
/** Clients hear of a new authority in seconds; those that do not for a day are away. */
const publishedMs = dayMs;

/** What a server's certificate is to be. */
export interface Wanted {
  /** Its name; another one makes all of its certificates anew. */
  readonly authority: string;
  /** DNS names and addresses under which clients reach the server. */
  readonly names: readonly string[];
}

/**
 * The same where all is well; else with what was due made anew. An authority is renewed long before it ends, and is
 * published beside the old one before a server shows a certificate of it.
 */
export function renewed(kept: Kept | undefined, { authority: name, names }: Wanted, now: Date): Kept {
  const authority = withAuthority(kept, name, now);
  const known = bundleOf(authority.ca);
  const newest = known[0]?.certificate;
  const isDue = isServerDue(
    authority,
    known.map(({ certificate }) => certificate),
    names,
    now,
  );
  if (!isDue || newest === undefined) return authority;
  const key = createPrivateKey(authority.caKey);
  const issued = issueServer(names, { name, key }, validFor(serverDays, now));
  return { ...authority, ...issued };
}

const withAuthority = (kept: Kept | undefined, name: string, now: Date): Kept => {
  const authority = renewedAuthority(kept, { name, days: authorityDays, leastDays: 2 * serverDays }, now);
  return authority === kept ? kept : { cert: kept?.cert ?? "", key: kept?.key ?? "", ...authority };
};

/** What is kept of an authority, and of those before it, in PEM. */
export interface KeptAuthority {
  /** The newest first: all that clients are to trust. */
  readonly ca: string;
  /** Of the newest. */
  readonly caKey: string;
}

export interface WantedAuthority {
  readonly name: string;
  readonly days: number;
  /** With fewer left it is followed by the next. */
  readonly leastDays: number;
}

/** The same where all is well; else with a new one before those that have not ended. */
export function renewedAuthority<K extends KeptAuthority>(
  kept: K | undefined,
  { name, days, leastDays }: WantedAuthority,
  now: Date,
): K | KeptAuthority {
  const known = bundleOf(kept?.ca ?? "").filter(({ certificate }) => certificate.validToDate > now);
  const [newest] = known;
  const isUsable = kept !== undefined && newest !== undefined && isKeyOf(kept.caKey, newest.certificate);
  if (isUsable && msLeft(newest.certificate, now) > leastDays * dayMs) return kept;
  const made = issueAuthority(name, validFor(days, now));
  const ca = [made.cert, ...known.slice(0, mostKept - 1).map(({ text }) => text)].join("");
  return { ca, caKey: made.key };
}

/** More than one follows another only where somebody has them made anew. */
const mostKept = 8;

function isServerDue(
  { cert, key }: Kept,
  known: readonly X509Certificate[],
  names: readonly string[],
  now: Date,
): boolean {
  const server = certificateIn(cert);
  if (server === undefined || !isKeyOf(key, server)) return true;
  const isOurs = known.some((ca) => server.checkIssued(ca) && server.verify(ca.publicKey));
  if (!isOurs || !names.every((name) => isFor(server, name))) return true;
  const [newest] = known;
  const isPublished = newest !== undefined && now.getTime() - madeAtMs(newest) >= publishedMs;
  const left = msLeft(server, now);
  return left < (serverDays * dayMs) / 6 || (isPublished && left < (serverDays * dayMs) / 3);
}

const isFor = (certificate: X509Certificate, name: string): boolean =>
  (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;

const msLeft = (certificate: X509Certificate, now: Date): number => certificate.validToDate.getTime() - now.getTime();

/** When an authority of ours was made, in milliseconds of the epoch. */
export const madeAtMs = (authority: X509Certificate): number => authority.validFromDate.getTime() + earlierMs;

const validFor = (days: number, now: Date): Validity => ({
  from: new Date(now.getTime() - earlierMs),
  until: new Date(now.getTime() + days * dayMs),
});

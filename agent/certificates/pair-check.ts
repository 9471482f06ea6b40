import { createPrivateKey, type X509Certificate } from "node:crypto";
import { bundleOf, certificateIn, isKeyOf } from "../../shared/certificates/mod.ts";

/** A node's certificate, its key, and whom it trusts: only together they are of use. In PEM. */
export interface Pair {
  readonly certificate: string;
  readonly privateKey: string;
  readonly ca: string;
}

/** More authorities than ever follow one another. */
const mostAuthorities = 16;
/** A chain that is longer has a circle in it, or is nobody's. */
const longestChain = 8;

/** What keeps a pair from being used by this node now: the middle and the end of a message; `undefined`: nothing. */
export function wrongPair({ certificate, privateKey, ca }: Pair, node: string, now: Date): string | undefined {
  const own = certificateIn(certificate);
  if (own === undefined) return "the certificate cannot be read, wanted PEM";
  return (
    wrongKey(privateKey, own) ??
    wrongNames(own, node) ??
    wrongDates(own, now) ??
    wrongAuthorities(ca) ??
    unsigned(own, ca, now)
  );
}

function wrongKey(privateKey: string, own: X509Certificate): string | undefined {
  let type: string | undefined;
  try {
    type = createPrivateKey(privateKey).asymmetricKeyType;
  } catch {
    return "the private key cannot be read, wanted PEM without a passphrase";
  }
  // ovs-monitor-ipsec tells strongSwan that keys are of RSA, whatever they are.
  if (type !== "rsa") return `the private key is of kind "${type}", wanted RSA, which alone ovs-monitor-ipsec knows`;
  return isKeyOf(privateKey, own) ? undefined : "the private key is not the certificate's";
}

/**
 * strongSwan knows a node by its DNS name, and the monitor finds that in the subject only where it is the last of several
 * parts.
 */
function wrongNames({ subject, subjectAltName = "" }: X509Certificate, node: string): string | undefined {
  const parts = subject.split("\n");
  if (parts.length < 2 || parts.at(-1) !== `CN=${node}`)
    return `the certificate's subject is "${parts.join(", ")}", wanted "CN=${node}" after another part`;
  const names = subjectAltName.split(", ");
  return names.includes(`DNS:${node}`)
    ? undefined
    : `the certificate's names are "${subjectAltName}", wanted "DNS:${node}" among them`;
}

function wrongDates(own: X509Certificate, now: Date): string | undefined {
  const clock = now.toISOString();
  if (own.validFromDate > now)
    return `the certificate holds from ${own.validFromDate.toISOString()}, and this node's clock says ${clock}: one of two clocks is wrong`;
  return own.validToDate > now
    ? undefined
    : `the certificate has ended at ${own.validToDate.toISOString()}, and this node's clock says ${clock}`;
}

function wrongAuthorities(ca: string): string | undefined {
  const known = bundleOf(ca);
  const blocks = ca.match(/-----BEGIN /g)?.length ?? 0;
  if (known.length === 0) return "there is no certificate of an authority";
  if (known.length !== blocks) return `of ${blocks} authorities ${blocks - known.length} cannot be read, wanted PEM`;
  if (known.length > mostAuthorities) return `there are ${known.length} authorities, wanted at most ${mostAuthorities}`;
  const other = known.find(({ certificate }) => !certificate.ca);
  return other && `"${other.certificate.subject.replaceAll("\n", ", ")}" is among the authorities and is none`;
}

/** By somebody in the bundle, up to one that has signed itself. */
function unsigned(own: X509Certificate, ca: string, now: Date): string | undefined {
  const known = bundleOf(ca).map(({ certificate }) => certificate);
  let last = own;
  for (let length = 0; length < longestChain; length++) {
    const signer = known.find((each) => isSignedBy(last, each) && each.validFromDate <= now && each.validToDate > now);
    if (signer === undefined) {
      const name = last.subject.replaceAll("\n", ", ");
      return `"${name}" is signed by none of the authorities that hold now, which it says is "${last.issuer.replaceAll("\n", ", ")}"`;
    }
    if (isSignedBy(signer, signer)) return undefined;
    last = signer;
  }
  return "the authorities lead to none that has signed itself";
}

/** Whether this one has signed it itself. */
export const isSignedBy = (certificate: X509Certificate, authority: X509Certificate): boolean =>
  certificate.checkIssued(authority) && certificate.verify(authority.publicKey);

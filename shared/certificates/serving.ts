import { createPrivateKey, X509Certificate } from "node:crypto";

/** What the server shows, and what its clients are to trust. In PEM. */
export interface Serving {
  readonly cert: string;
  readonly key: string;
  /** All authorities that a client may meet: at a change the old one and the new one. */
  readonly ca: string;
}

/** Where certificates come from. */
export interface CertificateSource {
  /** Those that hold now: renewed where it is time. @throws what keeps them from being read or made */
  current(): Promise<Serving>;
}

/** The first certificate of a PEM file; `undefined` for a text that has none. */
export function certificateIn(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Each certificate of a bundle that can be read, with its text. */
export const bundleOf = (pem: string): readonly { readonly text: string; readonly certificate: X509Certificate }[] =>
  (pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).flatMap((block) => {
    const certificate = certificateIn(block);
    return certificate === undefined ? [] : [{ text: `${block}\n`, certificate }];
  });

export function isKeyOf(key: string, certificate: X509Certificate): boolean {
  try {
    return certificate.checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

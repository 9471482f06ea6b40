/** The compressor of all archives: unlike Bun's other one it gives the same bytes on every processor. */
const library = "libdeflate";
const level = 6;

/** In gzip's format, without a name or a time; the highest level is for archives whose format demands it. */
export const gzip = (bytes: Uint8Array, { highest = false } = {}): Uint8Array<ArrayBuffer> =>
  Bun.gzipSync(unshared(bytes), { library, level: highest ? 9 : level });

/** The same without gzip's header and trailer. */
export const deflate = (bytes: Uint8Array): Uint8Array<ArrayBuffer> =>
  Bun.deflateSync(unshared(bytes), { library, level });

/** Narrows Bun's type; the buffer is not shared with another thread. */
const unshared = (bytes: Uint8Array): Uint8Array<ArrayBuffer> => bytes as Uint8Array<ArrayBuffer>;

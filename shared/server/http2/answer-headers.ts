import { limits } from "../../limits.ts";
import { encodeHeaders, type Header } from "../../rpc/hpack.ts";
import { GrpcCode } from "../../rpc/rpc-error.ts";

const answerHead: readonly Header[] = [
  [":status", "200"],
  ["content-type", "application/grpc"],
];

/** In front of an answer's messages. */
export const answerHeadBlock: Uint8Array = encodeHeaders(answerHead);

const succeeded: Uint8Array = encodeHeaders([["grpc-status", "0"]]);

/** Behind an answer's messages. */
export const trailersBlock = (code: GrpcCode, message: string): Uint8Array =>
  code === GrpcCode.ok && message === "" ? succeeded : encodeHeaders(statusHeaders(code, message));

/** An answer without messages. */
export const trailersOnlyBlock = (code: GrpcCode, message: string): Uint8Array =>
  encodeHeaders([...answerHead, ...statusHeaders(code, message)]);

export const httpStatusBlock = (status: number): Uint8Array => encodeHeaders([[":status", String(status)]]);

function statusHeaders(code: GrpcCode, message: string): Header[] {
  const headers: Header[] = [["grpc-status", String(code)]];
  if (message !== "") headers.push(["grpc-message", percentEncode(message)]);
  // Tells a caller that compressed what it may do instead (doc/compression.md).
  if (code === GrpcCode.unimplemented) headers.push(["grpc-accept-encoding", "identity"]);
  return headers;
}

/** `grpc-message`: UTF-8, all but printable ASCII and the percent sign as it is. Cut between two characters. */
export function percentEncode(text: string): string {
  let encoded = "";
  for (const character of text) {
    const next = isPlain(character) ? character : percentOf(character);
    if (encoded.length + next.length > limits.statusMessageBytes) break;
    encoded += next;
  }
  return encoded;
}

const isPlain = (character: string): boolean => character >= " " && character <= "~" && character !== "%";

function percentOf(character: string): string {
  let encoded = "";
  for (const byte of new TextEncoder().encode(character))
    encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  return encoded;
}

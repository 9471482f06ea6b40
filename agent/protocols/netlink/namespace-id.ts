import { Family, MessageType, Netnsa } from "./constants.ts";
import { Attributes, fixedHeader, type RawMessage } from "./message-reader.ts";
import type { Message } from "./message-writer.ts";

/** Asks under which number this namespace knows another one: links name their other end's namespace by it. */
export function getNamespaceId(fd: number): Message {
  return {
    action: () => "look up a network namespace's number",
    type: MessageType.GETNSID,
    body: (writer) => writer.u8x4(Family.UNSPEC).attrU32(Netnsa.FD, fd),
  };
}

/** `undefined` where it has none. @throws {MalformedMessage} */
export function readNamespaceId(message: RawMessage): number | undefined {
  const id = new Attributes(fixedHeader(message.body, 4).rest).i32(Netnsa.NSID);
  return id === undefined || id < 0 ? undefined : id;
}

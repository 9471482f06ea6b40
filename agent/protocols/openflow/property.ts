import type { WireWriter } from "./wire-writer.ts";

/** A property: type, length without the padding behind it, and what `content` writes. */
export function writeProperty(writer: WireWriter, type: number, content: () => void): void {
  const start = writer.length;
  writer.u16(type).u16(0);
  content();
  writer.setU16(start + 2, writer.length - start);
  writer.pad(start);
}

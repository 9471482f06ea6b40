/** Documents and records from outside: what they must look like, each described once, and how they are read. */
export { type ReadDocument, readDocument, readYaml } from "./read-document.ts";
export { maxRecordBytes, readRecord } from "./record-file.ts";
export {
  anyText,
  boolean,
  defaulted,
  defaultsOf,
  type Infer,
  integer,
  type Key,
  keysOf,
  list,
  object,
  oneOf,
  opaque,
  optional,
  required,
  type Schema,
  section,
  text,
  textThat,
  variants,
} from "./schema.ts";
export { type Findings, validate } from "./validate.ts";

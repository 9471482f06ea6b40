import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { CniCode, CniError } from "../../shared/errors.ts";
import { show } from "../../shared/schema/json-fields.ts";
import { writeOnce } from "../platform/atomic-file.ts";

const pattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * What tells this machine from another one of the same name: made once, and kept in the data directory.
 * @throws {CniError} code 5
 */
export function nodeUid(dataDir: string): string {
  const path = join(dataDir, "node-uid");
  const text = writeOnce(path, `${randomUUID()}\n`).trim();
  if (pattern.test(text)) return text;
  throw new CniError(
    CniCode.io,
    `Cannot tell which node this is: "${path}" holds ${show(text)}, wanted a UUID; without the file the node joins as a new one`,
  );
}

import type { Logger } from "../../../../shared/log.ts";
import { FollowedFile } from "../../../config/followed-file.ts";
import type { ServiceSource } from "./service.ts";
import { readServices } from "./service-file-shape.ts";

/** Ten thousand services with ten endpoints each. */
const mostBytes = 4 * 1024 * 1024;

/**
 * Follows a file of services (YAML or JSON). One that is not in order is told of in the log with its lines, and changes
 * nothing. Disposing ends it.
 * @param intervalMs between two looks at the file; absent: 250
 */
export function openServiceFile(path: string, logger: Logger, intervalMs?: number): ServiceSource {
  const read = (text: string) => readServices(text, path);
  return new FollowedFile({
    path,
    what: "services",
    mostBytes,
    read,
    logger,
    ...(intervalMs === undefined ? {} : { intervalMs }),
  });
}

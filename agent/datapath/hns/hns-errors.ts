import { CniCode, CniError } from "../../../shared/errors.ts";
import { HcnError } from "../../protocols/hcn/mod.ts";

/**
 * The error of an ADD or a DEL for a failure of HNS. A timeout, a missing service and a missing network are worth
 * another attempt, since the agent creates the network again.
 */
export function hnsError(action: string, caught: unknown): CniError {
  if (caught instanceof CniError) return caught;
  if (!(caught instanceof HcnError)) return CniError.from(caught, action);
  const code = isPassing(caught) ? CniCode.tryAgainLater : CniCode.interfaceFailure;
  const reason = caught.message.replace(/^Cannot /, "could not ").replace(/not found/gi, "absent");
  return new CniError(code, `Cannot ${action}: HNS ${reason}`, { cause: caught });
}

const isPassing = (error: HcnError): boolean => error.timedOut || error.isServiceAway;

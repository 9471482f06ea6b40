import { CniCode, CniError } from "../../../shared/errors.ts";
import { HcnError } from "../../protocols/hcn/mod.ts";

/**
 * What an ADD or a DEL answers for a failure of HNS. A call that was given up and a service that is away are worth
 * another attempt, and so is a network that is missing: the agent makes it again.
 */
export function hnsError(action: string, caught: unknown): CniError {
  if (caught instanceof CniError) return caught;
  if (!(caught instanceof HcnError)) return CniError.from(caught, action);
  const code = isPassing(caught) ? CniCode.tryAgainLater : CniCode.interfaceFailure;
  const reason = caught.message.replace(/^Cannot /, "could not ").replace(/not found/gi, "absent");
  return new CniError(code, `Cannot ${action}: HNS ${reason}`, { cause: caught });
}

const isPassing = (error: HcnError): boolean => error.timedOut || error.isServiceAway;

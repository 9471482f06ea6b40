import { describeHresult, isAbsence, isPresence, isServiceAway } from "./hresult.ts";

export interface HcnFailure {
  /** Continues "Cannot …", such as `create endpoint "…"`. */
  readonly action: string;
  /** The function of Windows that failed or did not return, such as `HcnCreateEndpoint`; empty where none was reached. */
  readonly call: string;
  /** Unsigned; 0 where there is none. */
  readonly hresult?: number;
  /** What the service wrote about it, often empty. */
  readonly serviceText?: string;
  /** In place of a number: what is, and what should be. */
  readonly reason?: string;
  readonly timedOut?: boolean;
}

/** A call of HNS that failed, or did not come back in time. */
export class HcnError extends Error {
  override readonly name = "HcnError";
  /** Unsigned, for `hresult.ts`; 0 where the service answered none. */
  readonly hresult: number;
  /** The function of Windows, such as `HcnCreateEndpoint`; empty where none was reached. */
  readonly call: string;
  /** The service's own words, unchanged. */
  readonly serviceText: string;
  /** The call was given up, or never begun, when its time was up; it may still take effect. */
  readonly timedOut: boolean;

  constructor(failure: HcnFailure) {
    super(`Cannot ${failure.action}: ${reasonOf(failure)}`);
    this.call = failure.call;
    this.hresult = (failure.hresult ?? 0) >>> 0;
    this.serviceText = failure.serviceText ?? "";
    this.timedOut = failure.timedOut ?? false;
  }

  /** The object of the call, or one that it belongs to, is not there. */
  get isAbsence(): boolean {
    return isAbsence(this.hresult);
  }

  /** The object that was to be made, or one that takes its place, is there already. */
  get isPresence(): boolean {
    return isPresence(this.hresult);
  }

  /** The service is away: the same call may succeed later. */
  get isServiceAway(): boolean {
    return isServiceAway(this.hresult);
  }
}

function reasonOf({ call, hresult = 0, serviceText = "", reason }: HcnFailure): string {
  if (reason !== undefined) return reason;
  const answer = `${call} answers ${hresult === 0 ? "an error without a number" : describeHresult(hresult)}`;
  // A runtime takes an error of DEL with the words "not found" for success, and HNS writes them in its sentences.
  const said = serviceText.trim().replace(/not found/gi, "not there");
  return said === "" ? answer : `${answer}: ${said}`;
}

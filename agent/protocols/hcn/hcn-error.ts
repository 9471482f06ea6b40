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
  /** Unsigned, for `describeHresult`; 0 where the service answered none. */
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

  /** For numbers: one of the names that are known here, `timeout`, `none` where the service said no number, else `other`. */
  get code(): string {
    if (this.timedOut) return "timeout";
    return this.hresult === 0 ? "none" : (known[this.hresult]?.[0] ?? "other");
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

/**
 * What HNS answers, by number: the one place that gives them names and a meaning. Those of facility 0x3B are HNS's own
 * (learn.microsoft.com/virtualization/api/hcn/hns_error_codes), the others Windows' (winerror.h).
 */
const known: Readonly<Record<number, readonly [name: string, meaning: string]>> = {
  2151350273: ["HCN_E_NETWORK_NOT_FOUND", "there is no such network"],
  2151350274: ["HCN_E_ENDPOINT_NOT_FOUND", "there is no such endpoint"],
  2151350275: ["HCN_E_LAYER_NOT_FOUND", "the network's switch layer is missing"],
  2151350276: ["HCN_E_SWITCH_NOT_FOUND", "the network's switch is missing"],
  2151350277: ["HCN_E_SUBNET_NOT_FOUND", "the network has no such subnet"],
  2151350278: ["HCN_E_ADAPTER_NOT_FOUND", "the adapter is missing, or another switch has taken it"],
  2151350279: ["HCN_E_PORT_NOT_FOUND", "the switch port is missing"],
  2151350280: ["HCN_E_POLICY_NOT_FOUND", "there is no such policy"],
  2151350281: ["HCN_E_VFP_PORTSETTING_NOT_FOUND", "the filtering platform knows nothing of the port"],
  2151350282: ["HCN_E_INVALID_NETWORK", "the network's document is wrong"],
  2151350283: ["HCN_E_INVALID_NETWORK_TYPE", "the network's type is none, or does not fit the operation"],
  2151350284: ["HCN_E_INVALID_ENDPOINT", "the endpoint's document is wrong"],
  2151350285: ["HCN_E_INVALID_POLICY", "a policy's settings are wrong"],
  2151350286: ["HCN_E_INVALID_POLICY_TYPE", "a policy's type is none"],
  2151350287: ["HCN_E_INVALID_REMOTE_ENDPOINT_OPERATION", "a remote endpoint cannot do this"],
  2151350288: ["HCN_E_NETWORK_ALREADY_EXISTS", "a network of this name or adapter is there already"],
  2151350289: ["HCN_E_LAYER_ALREADY_EXISTS", "the switch layer is there already"],
  2151350290: ["HCN_E_POLICY_ALREADY_EXISTS", "the policy is there already"],
  2151350291: ["HCN_E_PORT_ALREADY_EXISTS", "the port, or an address of it, is taken"],
  2151350292: ["HCN_E_ENDPOINT_ALREADY_ATTACHED", "the endpoint is attached already"],
  2151350293: ["HCN_E_REQUEST_UNSUPPORTED", "this version of HNS cannot do it, or not now"],
  2151350294: ["HCN_E_MAPPING_NOT_SUPPORTED", "the port mapping is of a kind that is not supported"],
  2151350295: ["HCN_E_DEGRADED_OPERATION", "the object is degraded: a policy of it was accepted and does not work"],
  2151350296: ["HCN_E_SHARED_SWITCH_MODIFICATION", "a switch that is shared cannot be changed"],
  2151350297: ["HCN_E_GUID_CONVERSION_FAILURE", "an identifier is no GUID"],
  2151350298: ["HCN_E_REGKEY_FAILURE", "the registry refuses"],
  2151350299: ["HCN_E_INVALID_JSON", "the document is no valid JSON"],
  2151350300: ["HCN_E_INVALID_JSON_REFERENCE", "the document refers to what is not there"],
  2151350301: ["HCN_E_ENDPOINT_SHARING_DISABLED", "the endpoint may not be shared"],
  2151350302: ["HCN_E_INVALID_IP", "an address is wrong, or outside of the network's subnets"],
  2151350303: ["HCN_E_SWITCH_EXTENSION_NOT_FOUND", "the switch has no such extension"],
  2151350304: ["HCN_E_MANAGER_STOPPED", "HNS is stopping"],
  2151350314: ["HCN_E_ICS_DISABLED", "connection sharing is switched off"],
  2151350315: ["HCN_E_ENDPOINT_NAMESPACE_ALREADY_EXISTS", "the endpoint is in a namespace already"],
  2151350316: ["HCN_E_ENTITY_HAS_REFERENCES", "something still uses the object"],
  2151350317: ["HCN_E_INVALID_INTERNAL_PORT", "the internal port is wrong"],
  2151350318: ["HCN_E_NAMESPACE_ATTACH_FAILED", "the endpoint could not be moved into the namespace"],
  2151350319: ["HCN_E_ADDR_INVALID_OR_RESERVED", "the address is wrong, or reserved"],
  2151350324: ["HCN_E_ENDPOINT_NOT_ATTACHED", "the endpoint is not attached"],
  2147500033: ["E_NOTIMPL", "this version of HNS does not know the operation"],
  2147500037: ["E_FAIL", "HNS says no more than that it failed"],
  2147942414: ["E_OUTOFMEMORY", "there is no memory left"],
  2147942405: ["E_ACCESSDENIED", "the caller is neither SYSTEM nor an administrator"],
  2147942487: ["E_INVALIDARG", "an argument is wrong; of a network: its adapter belongs to a switch already"],
  2147942583: ["ERROR_ALREADY_EXISTS", "the object is there already"],
  2147943453: ["ERROR_SERVICE_REQUEST_TIMEOUT", "the service HNS does not start"],
  2147943458: ["ERROR_SERVICE_DISABLED", "the service HNS is switched off"],
  2147943462: ["ERROR_SERVICE_NOT_ACTIVE", "the service HNS does not run"],
  2147943568: ["ERROR_NOT_FOUND", "there is no such object"],
  2147944122: ["RPC_S_SERVER_UNAVAILABLE", "the service HNS does not run"],
  2147944126: ["RPC_S_CALL_FAILED", "the service HNS ended in mid-call"],
  2147944127: ["RPC_S_CALL_FAILED_DNE", "the service HNS ended before the call began"],
  2147947410: ["ERROR_OBJECT_ALREADY_EXISTS", "the object is there already, maybe left from before"],
};

/** 0: success. As the sign says it: everything from 0x80000000 on is a failure. */
export const isFailure = (hresult: number): boolean => hresult >>> 0 >= 0x80000000;

/** As in `0x803B0002`. */
export const formatHresult = (hresult: number): string =>
  `0x${(hresult >>> 0).toString(16).toUpperCase().padStart(8, "0")}`;

/** For messages: name, number and meaning, as far as they are known. */
export function describeHresult(hresult: number): string {
  const entry = known[hresult >>> 0];
  const number = formatHresult(hresult);
  return entry === undefined ? number : `${entry[0]} (${number}: ${entry[1]})`;
}

/** The object, or one that it belongs to, is not there. Which of the three it is differs between versions of HNS. */
export const isAbsence = (hresult: number): boolean => [0x803b0001, 0x803b0002, 0x80070490].includes(hresult >>> 0);

/** An object of this identifier or name, or a port with this address, is there already. */
export const isPresence = (hresult: number): boolean =>
  [0x803b0010, 0x803b0013, 0x800700b7, 0x80071392].includes(hresult >>> 0);

/** The endpoint is where an attachment wants it to be. */
export const isAttachedAlready = (hresult: number): boolean => [0x803b0014, 0x803b002b].includes(hresult >>> 0);

/** The endpoint is where a detachment wants it to be. */
export const isDetachedAlready = (hresult: number): boolean => hresult >>> 0 === 0x803b0034 || isAbsence(hresult);

/** The service itself is away, for a restart or for good: the same call may succeed later. */
export const isServiceAway = (hresult: number): boolean =>
  [0x803b0020, 0x8007041d, 0x80070422, 0x80070426, 0x800706ba, 0x800706be, 0x800706bf].includes(hresult >>> 0);

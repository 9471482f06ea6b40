/** HRESULTs that the service answers with, by what they mean. */
export const hresult = {
  networkNotFound: 0x803b0001,
  endpointNotFound: 0x803b0002,
  adapterNotFound: 0x803b0006,
  policyNotFound: 0x803b0008,
  invalidNetwork: 0x803b000a,
  invalidNetworkType: 0x803b000b,
  invalidEndpoint: 0x803b000c,
  invalidPolicy: 0x803b000d,
  invalidPolicyType: 0x803b000e,
  networkAlreadyExists: 0x803b0010,
  portAlreadyExists: 0x803b0013,
  endpointAlreadyAttached: 0x803b0014,
  requestUnsupported: 0x803b0015,
  degradedOperation: 0x803b0017,
  invalidJson: 0x803b001b,
  invalidJsonReference: 0x803b001c,
  invalidIp: 0x803b001e,
  switchExtensionNotFound: 0x803b001f,
  managerStopped: 0x803b0020,
  endpointNamespaceAlreadyExists: 0x803b002b,
  entityHasReferences: 0x803b002c,
  addressInvalidOrReserved: 0x803b002f,
  endpointNotAttached: 0x803b0034,
  notImplemented: 0x80004001,
  invalidHandle: 0x80070006,
  invalidArgument: 0x80070057,
  elementNotFound: 0x80070490,
  objectAlreadyExists: 0x80071392,
  serviceUnavailable: 0x800706ba,
} as const;

/** What a call of HNS fails with; anything else that is thrown is a fault of the stub. */
export class Refusal extends Error {
  readonly hresult: number;
  constructor(code: number, text: string) {
    super(text);
    this.hresult = code;
  }
}

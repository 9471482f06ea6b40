import type { Cidr, Ip } from "../../../shared/net/ip.ts";

/** Another end as the device is to have it. Keys are in base64. */
export interface PeerChange {
  readonly publicKey: string;
  /** Takes the peer away; the rest means nothing then. */
  readonly remove?: true;
  /** Absent: stays, as the peer itself may have roamed. */
  readonly endpoint?: Endpoint;
  /** Instead of all that it has had. */
  readonly allowed?: readonly Cidr[];
  /** 0: none. One that is turned on makes the device greet the peer at once. */
  readonly keepaliveSeconds?: number;
}

export interface Endpoint {
  readonly ip: Ip;
  readonly port: number;
}

/** What changes at a device; the rest stays. */
export interface DeviceChange {
  readonly privateKey?: Uint8Array;
  readonly listenPort?: number;
  readonly peers?: readonly PeerChange[];
}

/** A peer as the device has it. */
export interface PeerState {
  readonly publicKey: string;
  readonly endpoint?: Endpoint;
  readonly allowed: readonly Cidr[];
  /** 0: none. */
  readonly keepaliveSeconds: number;
  /** Seconds of the clock; 0: there was none yet. */
  readonly handshakeAt: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

export interface DeviceState {
  /** Absent: the device has no key. */
  readonly publicKey?: string;
  readonly listenPort: number;
  readonly peers: readonly PeerState[];
}

/** One device of WireGuard, in the kernel or in user space. */
export interface WireGuardDevice extends Disposable {
  /** @throws {CniError} 102 where it is refused, 11 where nobody answers */
  read(): Promise<DeviceState>;
  /** @throws {CniError} as `read` */
  change(change: DeviceChange): Promise<void>;
}

import { RpcChannel } from "../../shared/channel/rpc-channel.ts";
import { paths } from "../../shared/os/paths.ts";
import { healthService, ipamService, ServingStatus } from "../../shared/proto/daemon-services.ts";
import type { FindingMessage, LeaseMessage, NetworkStats } from "../../shared/proto/ipam-messages.ts";
import type { Attachment, GcResponse } from "../../shared/proto/pipette-messages.ts";

export { GrpcCode, RpcError } from "../../shared/rpc/rpc-error.ts";
export type { Attachment, FindingMessage, GcResponse, LeaseMessage, NetworkStats };

export interface IpamClientOptions {
  /** Deadline of each call; 30 s by default. For a list: until its next lease. */
  readonly timeoutMs?: number;
}

/** An attachment of a network. */
export interface AttachmentName extends Attachment {
  readonly network: string;
}

export interface AllocateCall extends Attachment {
  /**
   * As an IPAM plugin gets it on stdin; without `ipam` the server uses its own ranges for the network of this `name`.
   */
  readonly configuration: { readonly cniVersion: string; readonly name: string; readonly [key: string]: unknown };
  /** CNI_ARGS. */
  readonly args?: string;
}

export interface Allocated {
  /** The CNI result, in the shape of the configuration's `cniVersion`. */
  readonly result: Readonly<Record<string, unknown>>;
  /** One per range set. */
  readonly leases: readonly LeaseMessage[];
}

/**
 * Calls the allocator of this node: of `pipette ipam serve`, or of the agent on its socket. Every method throws an
 * `RpcError`: its `grpcCode` says what to do next (`shared/proto/pipette.proto`), its message is for people.
 * `docs/ipam-service.md` has an example.
 */
export class IpamClient implements Disposable {
  readonly #channel: RpcChannel;
  readonly #timeoutMs: number;

  /** @param address path of the socket */
  constructor(address: string = paths.ipamSocket, { timeoutMs = 30_000 }: IpamClientOptions = {}) {
    this.#channel = new RpcChannel(address);
    this.#timeoutMs = timeoutMs;
  }

  /** The same attachment again gets the same addresses. */
  async allocate(
    { containerId, ifname, args = "", configuration }: AllocateCall,
    signal?: AbortSignal,
  ): Promise<Allocated> {
    const networkConfiguration = new TextEncoder().encode(JSON.stringify(configuration));
    const request = { containerId, ifname, args, networkConfiguration };
    const { cniResult, leases } = await this.#channel.unary(ipamService.allocate, request, this.#options(signal));
    return { result: JSON.parse(new TextDecoder().decode(cniResult)), leases };
  }

  /** The released leases in their new state; empty if there were none. */
  async release(attachment: AttachmentName, signal?: AbortSignal): Promise<readonly LeaseMessage[]> {
    return (await this.#channel.unary(ipamService.release, attachment, this.#options(signal))).released;
  }

  /** The attachment's leases, in the order of the range sets. */
  async get(attachment: AttachmentName, signal?: AbortSignal): Promise<readonly LeaseMessage[]> {
    return (await this.#channel.unary(ipamService.get, attachment, this.#options(signal))).leases;
  }

  /** Leases in any state by network and address, of every network if none is named; read while the loop runs. */
  list(network = "", signal?: AbortSignal): AsyncGenerator<LeaseMessage, void> {
    return this.#channel.stream(ipamService.list, { network }, this.#options(signal));
  }

  /** What is wrong with the lease database, the worst first. */
  async check(signal?: AbortSignal): Promise<readonly FindingMessage[]> {
    return (await this.#channel.unary(ipamService.check, {}, this.#options(signal))).findings;
  }

  /** Ends every attachment of the network except these. */
  gc(network: string, valid: readonly Attachment[], signal?: AbortSignal): Promise<GcResponse> {
    return this.#channel.unary(ipamService.gc, { network, valid: { attachments: valid } }, this.#options(signal));
  }

  /** Numbers of one network, or of all. */
  async stats(network = "", signal?: AbortSignal): Promise<readonly NetworkStats[]> {
    return (await this.#channel.unary(ipamService.stats, { network }, this.#options(signal))).networks;
  }

  /** Whether the server reports that it can serve. */
  async serving(signal?: AbortSignal): Promise<boolean> {
    const { status } = await this.#channel.unary(healthService.check, { service: "" }, this.#options(signal));
    return status === ServingStatus.serving;
  }

  /** Closes the connection; calls that run are ended. */
  [Symbol.dispose](): void {
    this.#channel[Symbol.dispose]();
  }

  #options(signal: AbortSignal | undefined) {
    return { timeoutMs: this.#timeoutMs, ...(signal === undefined ? {} : { signal }) };
  }
}

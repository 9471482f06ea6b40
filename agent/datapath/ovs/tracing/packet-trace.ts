import type { TracedPacket } from "../../../../shared/documents/mod.ts";
import { isWindows } from "../../../../shared/os/platform.ts";
import { reasonOf } from "../../../../shared/reason.ts";
import {
  addFlow,
  type ConnectionEvent,
  deleteFlow,
  deleteFlows,
  type Flow,
  forwardPackets,
  OpenFlowClient,
  type OpenFlowRequest,
  parseAddress,
} from "../../../protocols/openflow/mod.ts";
import type { PacketTrace } from "../../tracing.ts";
import { traceFlowSeconds } from "../pipeline/traced.ts";
import type { FollowedPackets } from "./followed-packets.ts";
import { observationOf } from "./observation.ts";

/** People wait for the switch. */
const connectMs = 3_000;
/** So often flows are put in again, which end by themselves. */
const renewMs = (traceFlowSeconds * 1000) / 3;
/** Between looks for what has become quiet. */
const lookMs = 100;

export interface SwitchTraceOptions {
  readonly management: string;
  readonly cookie: bigint;
  readonly packets: FollowedPackets;
  /** Those that report, and pick what comes from other nodes. */
  readonly flows: readonly Flow[];
  /** Those that pick real connections; taken out while enough are followed. */
  readonly picking: readonly Flow[];
  /** Answers when packets go by flows that were put in. */
  settled(): Promise<void>;
  /** Sent once, when all flows are there. */
  readonly packet?: OpenFlowRequest;
  /** Sent at the end; a switch that does not know it forgets by itself what the packet has left. */
  readonly forget?: OpenFlowRequest;
  readonly seconds: number;
  /** What it looks out for may come after its end, and must not reach a pod then: its flows end by themselves. */
  readonly mayComeLate: boolean;
  /** Called once, when it looks no more. */
  ended(): void;
  /** Called once, when nothing of it is in the switch any more, as far as that can be had. */
  over(): void;
}

const allBits = (1n << 64n) - 1n;

/** A trace in the switch, over a connection of its own: with that, its flows are no part of the node's program. */
export class SwitchTrace implements PacketTrace {
  readonly #options: SwitchTraceOptions;
  readonly #client: OpenFlowClient;
  readonly #untilMs: number;
  readonly #look: ReturnType<typeof setInterval>;
  #change = Promise.withResolvers<void>();
  #renewedAt = performance.now();
  #hasBegun = false;
  #isPicking = true;
  #paused = false;
  #revision = 1;
  #ended: string | undefined;
  #cleaning: Promise<void> | undefined;

  /** @throws {OpenFlowError} */
  static async start(options: SwitchTraceOptions): Promise<SwitchTrace> {
    const events: { on: (event: ConnectionEvent) => void } = { on: () => undefined };
    const client = await OpenFlowClient.connect(parseAddress(options.management, isWindows), {
      connectMs,
      onEvent: (event) => events.on(event),
    });
    const trace = new SwitchTrace(options, client);
    events.on = (event) => trace.#onEvent(event);
    try {
      await trace.#begin();
    } catch (caught) {
      await trace[Symbol.asyncDispose]();
      throw caught;
    }
    return trace;
  }

  private constructor(options: SwitchTraceOptions, client: OpenFlowClient) {
    this.#options = options;
    this.#client = client;
    this.#untilMs = performance.now() + options.seconds * 1000;
    this.#look = setInterval(() => void this.#lookAround(), lookMs);
    void client.closed.then((error) => this.#end(`the switch cannot be reached any more: ${error.message}`));
  }

  get revision(): number {
    return this.#revision;
  }

  get ended(): string | undefined {
    return this.#ended;
  }

  get packets(): readonly TracedPacket[] {
    return this.#options.packets.list();
  }

  get passed(): number {
    return this.#options.packets.passed;
  }

  get paused(): boolean {
    return this.#paused;
  }

  changed(): Promise<void> {
    return this.#change.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end("it was ended");
    await this.#cleaning;
  }

  async #begin(): Promise<void> {
    const { flows, picking, settled, packet } = this.#options;
    await this.#client.run([forwardPackets]);
    await this.#client.bundle([...flows, ...picking].map(addFlow));
    await settled();
    this.#hasBegun = true;
    if (packet !== undefined) await this.#client.do(packet);
  }

  #onEvent(event: ConnectionEvent): void {
    const { cookie, packets, picking } = this.#options;
    if (event.t !== "packet-in" || event.cookie !== cookie || this.#ended !== undefined) return;
    const seen = observationOf(event, Date.now());
    if (seen === undefined) return;
    const now = performance.now();
    if (packets.take(seen, now)) this.#tell();
    if (picking.length === 0 || !this.#isPicking || !packets.isBusy(now)) return;
    this.#isPicking = false;
    this.#paused = true;
    this.#send(picking.map(deleteFlow));
  }

  #lookAround(): void {
    const now = performance.now();
    const { packets, flows, picking } = this.#options;
    if (packets.settle(now)) this.#tell();
    if (this.#ended === undefined && now >= this.#untilMs) this.#end("");
    if (this.#ended !== undefined) return;
    const goesOn = !this.#isPicking && !packets.isBusy(now);
    if (!goesOn && now - this.#renewedAt < renewMs) return;
    this.#isPicking ||= goesOn;
    this.#renewedAt = now;
    this.#send([...flows, ...(this.#isPicking ? picking : [])].map(addFlow));
  }

  #send(requests: readonly OpenFlowRequest[]): void {
    this.#client.run(requests).catch((caught: unknown) => this.#end(reasonOf(caught)));
  }

  #end(reason: string): void {
    if (this.#ended !== undefined) return;
    this.#ended = reason;
    clearInterval(this.#look);
    this.#options.packets.settle(Number.POSITIVE_INFINITY);
    const { mayComeLate, packets, ended } = this.#options;
    const isAwaited = mayComeLate && this.#hasBegun && packets.list().length === 0;
    this.#cleaning = (isAwaited ? this.#leave() : this.#cleanUp()).finally(ended);
    this.#tell();
  }

  /** For the longest time, from now on: a kernel keeps packets for seconds while it asks for a neighbour. */
  async #leave(): Promise<void> {
    const { flows, over } = this.#options;
    await this.#client.run(flows.map(addFlow)).catch(() => undefined);
    this.#client[Symbol.dispose]();
    setTimeout(over, traceFlowSeconds * 1000).unref();
  }

  /** Where this fails the flows end by themselves. */
  async #cleanUp(): Promise<void> {
    const { cookie, over, forget } = this.#options;
    const own = deleteFlows({ cookie: { value: cookie, mask: allBits } });
    await this.#client.run(forget === undefined ? [own] : [own, forget], connectMs).catch(() => undefined);
    this.#client[Symbol.dispose]();
    over();
  }

  #tell(): void {
    this.#revision++;
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FlowCommand, headerBytes, MessageType, MultipartType } from "../../../agent/protocols/openflow/constants.ts";
import { BundleControl, type Frame, FrameReader } from "../../../agent/protocols/openflow/message.ts";
import { features, hello, message, refusal } from "./scripted-switch.ts";

/** What a switch is told to change, by what tests tell it apart. */
export type Change =
  | { readonly t: "flow"; readonly command: number; readonly table: number; readonly priority: number }
  | { readonly t: "group"; readonly id: number }
  | { readonly t: "meter"; readonly id: number };

/** Whether it is a flow that is added. */
export const isAddedFlow = (change: Change): boolean => change.t === "flow" && change.command === FlowCommand.add;

/**
 * For unit tests only: a switch behind a socket that keeps flows by table and priority, and groups by number. It does
 * what a real one will not do on request: refuses what a test says, and goes away at an exact message.
 */
export class SwitchInMemory implements AsyncDisposable {
  /** "table/priority", of the flows that it has, with their cookies. */
  readonly flows = new Map<string, bigint>();
  readonly groups = new Set<number>();
  /** Bundles that were committed, and changes that came by themselves. */
  readonly done: (readonly Change[])[] = [];
  /** Type and code of the error that a change is answered with. */
  refuse: (change: Change) => readonly [type: number, code: number] | undefined = () => undefined;
  /** Whether it tells what others change, as Open vSwitch does from 3.0 on. */
  canWatch = true;
  /** Runs at every change, before it is answered; whoever cuts the connection in it leaves the answer out. */
  before: (change: Change) => void = () => undefined;
  /** Answers wait for this. */
  held: Promise<unknown> | undefined;
  readonly #directory = mkdtempSync(join(tmpdir(), "pipette-switch-"));
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  get management(): string {
    return `unix:${this.#directory}/s`;
  }

  async listen(): Promise<void> {
    const made = createServer((socket) => this.#serve(socket));
    this.#server = made;
    await new Promise<void>((listening) => made.listen(`${this.#directory}/s`, listening));
  }

  /** All connections end; the next one finds what the switch has, or nothing where it was made anew. */
  cut(anew = false): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
    if (!anew) return;
    this.flows.clear();
    this.groups.clear();
  }

  async close(): Promise<void> {
    this.cut();
    const server = this.#server;
    this.#server = undefined;
    if (server !== undefined) await new Promise((closed) => server.close(closed));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("error", () => undefined);
    const reader = new FrameReader();
    const bundles = new Map<number, Uint8Array[]>();
    const say = (answer: Uint8Array | undefined): void => {
      if (answer !== undefined && this.#sockets.has(socket)) socket.write(answer);
    };
    socket.on("data", (chunk: Uint8Array) => {
      for (const frame of reader.push(chunk)) {
        const answer = this.#answer(frame, bundles);
        if (this.held === undefined) say(answer);
        else void this.held.then(() => say(answer));
      }
    });
  }

  #answer({ type, xid, bytes }: Frame, bundles: Map<number, Uint8Array[]>): Uint8Array | undefined {
    const body = bytes.slice(headerBytes);
    const view = viewOf(body);
    switch (type) {
      case MessageType.HELLO:
        return hello();
      case MessageType.FEATURES_REQUEST:
        return features(xid);
      case MessageType.ECHO_REQUEST:
        return message(MessageType.ECHO_REPLY, xid);
      case MessageType.BARRIER_REQUEST:
        return message(MessageType.BARRIER_REPLY, xid);
      case MessageType.MULTIPART_REQUEST:
        if (!this.canWatch && view.getUint16(0) === MultipartType.FLOW_MONITOR) return refusal(xid, 1, 2, bytes);
        // Nobody else has put anything into it.
        return message(MessageType.MULTIPART_REPLY, xid, body.slice(0, 8));
      case MessageType.BUNDLE_CONTROL: {
        const [bundle, control] = [view.getUint32(0), view.getUint16(4)];
        const added = bundles.get(bundle) ?? [];
        bundles.set(bundle, added);
        if (control === BundleControl.COMMIT_REQUEST) this.#apply(added.map(changeOf), added);
        const answer = new Uint8Array(body.slice(0, 8));
        viewOf(answer).setUint16(4, control + 1);
        return message(MessageType.BUNDLE_CONTROL, xid, answer);
      }
      case MessageType.BUNDLE_ADD_MESSAGE: {
        const inner = body.slice(8);
        const error = this.#refusal(xid, inner);
        bundles.get(view.getUint32(0))?.push(inner);
        return error;
      }
      case MessageType.FLOW_MOD:
      case MessageType.GROUP_MOD:
      case MessageType.METER_MOD: {
        const error = this.#refusal(xid, bytes);
        if (error === undefined) this.#apply([changeOf(bytes)], [bytes]);
        return error;
      }
      default:
        return undefined;
    }
  }

  #refusal(xid: number, bytes: Uint8Array): Uint8Array | undefined {
    const change = changeOf(bytes);
    this.before(change);
    const error = this.refuse(change);
    return error === undefined ? undefined : refusal(xid, error[0], error[1], bytes.slice(0, 64));
  }

  #apply(changes: readonly Change[], messages: readonly Uint8Array[]): void {
    this.done.push(changes);
    changes.forEach((change, i) => {
      const view = viewOf(messages[i] ?? new Uint8Array());
      if (change.t === "group") {
        // OFPGC_DELETE
        if (view.getUint16(8) === 2) this.groups.delete(change.id);
        else this.groups.add(change.id);
      }
      if (change.t !== "flow") return;
      const [key, cookie, mask] = [`${change.table}/${change.priority}`, view.getBigUint64(8), view.getBigUint64(16)];
      if (change.command === FlowCommand.add) this.flows.set(key, cookie);
      else if (change.command === FlowCommand.deleteStrict) this.flows.delete(key);
      else for (const [other, has] of this.flows) if ((has & mask) === (cookie & mask)) this.flows.delete(other);
    });
  }
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Of one message, with its header (OpenFlow 1.5.1, 7.3.4). */
function changeOf(bytes: Uint8Array): Change {
  const view = viewOf(bytes);
  switch (view.getUint8(1)) {
    case MessageType.FLOW_MOD:
      return { t: "flow", command: view.getUint8(25), table: view.getUint8(24), priority: view.getUint16(30) };
    case MessageType.GROUP_MOD:
      return { t: "group", id: view.getUint32(12) };
    default:
      return { t: "meter", id: view.getUint32(12) };
  }
}

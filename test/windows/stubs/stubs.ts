import { HnsService } from "../../fakes/hns/hns-service.ts";
import type { WinePrefix } from "../wine/prefix.ts";
import { type Field, portFile, StubChannel } from "./channel.ts";
import { Commands } from "./commands.ts";

/** What our stubs in a Windows talk to. It answers on this thread: a test that blocks it blocks HNS. */
export class Stubs implements AsyncDisposable {
  readonly hns = new HnsService();
  readonly commands = new Commands();
  #channel: StubChannel | undefined;

  static async serve(prefix: WinePrefix): Promise<Stubs> {
    const stubs = new Stubs();
    const { hns } = stubs;
    stubs.#channel = await StubChannel.open({
      ask: ([to, ...fields]: readonly Field[]) => (to === "hcn" ? hns.answer(fields) : stubs.commands.answer(fields)),
      began: (pid) => hns.handles.began(pid),
      ended: (pid) => hns.handles.ended(pid),
    });
    prefix.write(portFile, String(stubs.#channel.port));
    return stubs;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.hns.reset();
    await this.#channel?.[Symbol.asyncDispose]();
  }
}

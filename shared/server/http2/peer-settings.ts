import {
  initialFrameBytes,
  initialWindowBytes,
  mostFrameBytes,
  mostWindowBytes,
  readUint32,
  settingIds,
} from "../../rpc/h2-frames.ts";
import { type Fault, H2Code } from "./fault.ts";

/** What the peer allows (RFC 9113, section 6.5.2), as far as it concerns what we send. */
export class PeerSettings {
  frameBytes: number = initialFrameBytes;
  /** Of streams that are opened from now on. */
  windowBytes: number = initialWindowBytes;
  /** Whether its table for our headers has become smaller, which the next block has to confirm (RFC 7541, 4.2). */
  tableShrunk = false;

  /** @param payload six bytes per setting */
  apply(payload: Uint8Array): Fault | undefined {
    for (let at = 0; at < payload.length; at += 6) {
      const id = readUint32(payload, at) >>> 16;
      const value = readUint32(payload, at + 2);
      if (id === settingIds.initialWindowSize) {
        if (value > mostWindowBytes) {
          const is = `an initial window of ${value} bytes came, wanted at most ${mostWindowBytes}`;
          return { code: H2Code.flowControlError, is };
        }
        this.windowBytes = value;
      } else if (id === settingIds.maxFrameSize) {
        if (value < initialFrameBytes || value > mostFrameBytes) {
          const is = `a frame size of ${value} bytes came, wanted ${initialFrameBytes} to ${mostFrameBytes}`;
          return { code: H2Code.protocolError, is };
        }
        this.frameBytes = value;
      } else if (id === settingIds.enablePush) {
        if (value > 1) return { code: H2Code.protocolError, is: `ENABLE_PUSH ${value} came, wanted 0 or 1` };
      } else if (id === settingIds.headerTableSize) {
        this.tableShrunk ||= value < initialTableBytes;
      }
    }
    return undefined;
  }
}

const initialTableBytes = 4096;

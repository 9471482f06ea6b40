import { createLogger } from "../log.ts";

/** The part of a stream that is used. */
interface Sink {
  write(text: string, written: () => void): unknown;
}

/** Of texts that wait for a reader: some thousands of lines of a log. */
const maxWaitingChars = 1024 * 1024;

/**
 * Writes to a stream whose reader may be slow, or stuck: a daemon neither waits for whoever reads its log, nor keeps for
 * them what it has to say for ever. What comes while too much waits is left out, and a line of the log tells of it once
 * there is room.
 */
export function boundedWriter(stream: Sink, maxChars = maxWaitingChars): (text: string) => void {
  let waitingChars = 0;
  let leftOut = 0;
  const put = (text: string): void => {
    waitingChars += text.length;
    stream.write(text, () => {
      waitingChars -= text.length;
      if (leftOut > 0 && waitingChars <= maxChars / 2) tell();
    });
  };
  const logger = createLogger("warn", (line) => put(`${line}\n`));
  const tell = (): void => {
    const lines = leftOut;
    leftOut = 0;
    logger.warn("lines of this log were left out: they were not read in time", { lines });
  };
  return (text) => {
    if (waitingChars < maxChars) put(text);
    else leftOut++;
  };
}

/** One event of a stream (HTML, "Server-sent events"): the fields that ours have. */
export interface StreamEvent {
  readonly id: string;
  readonly data: string;
}

/** Cuts a stream of text into events, wherever its pieces end. Comments are answered as `undefined`. */
export class EventCutter {
  #rest = "";

  take(text: string): StreamEvent[] {
    const parts = (this.#rest + text).split("\n\n");
    this.#rest = parts.pop() ?? "";
    return parts.flatMap((part) => {
      let [id, data] = ["", ""];
      for (const line of part.split("\n")) {
        if (line.startsWith("id: ")) id = line.slice(4);
        else if (line.startsWith("data: ")) data += line.slice(6);
      }
      return data === "" ? [] : [{ id, data }];
    });
  }
}

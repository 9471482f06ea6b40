import { connect, createServer } from "node:net";

/** Serves a pipe, as Open vSwitch does on Windows, with what listens on a TCP port; calls back once it listens. */
export function relay(pipe: string, port: number, listening: () => void): void {
  const server = createServer((end) => {
    const back = connect(port, "127.0.0.1");
    for (const each of [end, back]) each.on("error", () => undefined);
    end.pipe(back).pipe(end);
  });
  server.listen(pipe, listening);
}

import { serveCalls } from "../../../agent/protocols/hcn/call-server.ts";
import { HnsService } from "./hns-service.ts";
import { NativeHns } from "./native-hns.ts";

/**
 * For unit tests: first file of a thread with a fake service of its own, which V1's paths steer. `/block/<ms>` blocks as
 * a native call does, `/die` and `/throw` end the thread and the call, `/handles` answers how many objects are open and
 * `/calls` how often functions were called; `/block-next/<ms>/<function>` blocks the next call of that function.
 */
serveCalls((marks) => {
  const service = new HnsService();
  const native = new NativeHns(service, marks);
  const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  let orders = 0;
  native.hnsCall = (method, path) =>
    marks.within("HNSCall", () => {
      orders++;
      const [, order, ms, call = ""] = path.split("/");
      if (order === "block") block(Number(ms));
      if (order === "block-next") service.fault({ call, times: 1, meanwhile: () => block(Number(ms)) });
      if (order === "die") process.exit(3);
      if (order === "throw") throw new Error("Thrown on request");
      const counts: Record<string, number> = {
        handles: service.handles.list().length,
        calls: service.calls.length + orders,
      };
      return JSON.stringify({ Success: true, Output: counts[order ?? ""] ?? method });
    });
  return native;
});

import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { traceOf } from "../../../shared/reason.ts";
import { CallMarks } from "./call-marks.ts";
import { NativeError, type NativeHcn } from "./native.ts";
import { HcnOperations } from "./operations.ts";
import type { HcnOutcome, HcnTask } from "./thread-messages.ts";

/**
 * The work of a thread that may block: takes one task after the other from the thread that started it, and answers each.
 * @param open what the thread works on; opened with its first task, so that a failure has somebody to tell
 */
export function serveCalls(open: (marks: CallMarks) => NativeHcn, port: MessagePort | null = parentPort): void {
  const marks = new CallMarks(workerData as SharedArrayBuffer);
  let operations: HcnOperations | undefined;
  port?.on("message", (task: HcnTask) => {
    operations ??= new HcnOperations(open(marks));
    port.postMessage(outcomeOf(operations, task));
  });
}

/** Does one task, and says what became of it. */
export function outcomeOf(operations: HcnOperations, task: HcnTask): HcnOutcome {
  try {
    return { t: "done", value: perform(operations, task) };
  } catch (caught) {
    if (caught instanceof NativeError) return { t: "failed", failure: caught.failure };
    const reason = traceOf(caught);
    return { t: "failed", failure: { call: "", reason } };
  }
}

function perform(operations: HcnOperations, task: HcnTask): unknown {
  switch (task[0]) {
    case "list":
      return operations.list(task[1]);
    case "find":
      return operations.find(task[1], task[2]);
    case "create":
      return operations.create(task[1], task[2], task[3], task[4]);
    case "modify":
      return operations.modify(task[1], task[2], task[3]);
    case "remove":
      return operations.remove(task[1], task[2]);
    case "attach":
      return operations.attach(task[1], task[2]);
    case "detach":
      return operations.detach(task[1], task[2]);
    case "hnsCall":
      return operations.hnsCall(task[1], task[2], task[3]);
  }
}

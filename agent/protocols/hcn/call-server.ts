import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { traceOf } from "../../../shared/reason.ts";
import { CallMarks } from "./call-marks.ts";
import type { HcnDocument, HcnModify } from "./hcn.ts";
import { type HcnKind, NativeError, type NativeFailure, type NativeHcn } from "./native.ts";
import { HcnOperations } from "./operations.ts";

/** A task of the main thread for a thread that may block: a method of `HcnOperations` with its arguments. */
export type HcnTask =
  | readonly [method: "ids", kind: HcnKind]
  | readonly [method: "findAll", kind: HcnKind, ids: readonly string[]]
  | readonly [method: "find", kind: HcnKind, id: string]
  | readonly [method: "create", kind: HcnKind, id: string | undefined, settings: HcnDocument, networkId?: string]
  | readonly [method: "modify", kind: HcnKind, id: string, request: HcnModify | HcnDocument]
  | readonly [method: "remove", kind: HcnKind, id: string]
  | readonly [method: "attach" | "detach", namespaceId: string, endpointId: string]
  | readonly [method: "hnsCall", verb: string, path: string, body: HcnDocument | undefined];

/** What it answers. */
export type HcnOutcome =
  | { readonly t: "done"; readonly value: unknown }
  | { readonly t: "failed"; readonly failure: NativeFailure };

/**
 * The work of a thread that may block: takes one task after the other from the thread that started it, and answers
 * each.
 * @param open opens the libraries; called with the first task, so that a failure can be reported
 */
export function serveCalls(open: (marks: CallMarks) => NativeHcn, port: MessagePort | null = parentPort): void {
  const marks = new CallMarks(workerData as SharedArrayBuffer);
  let operations: HcnOperations | undefined;
  port?.on("message", (task: HcnTask) => {
    operations ??= new HcnOperations(open(marks));
    port.postMessage(outcomeOf(operations, task));
  });
}

/** Runs one task, and answers its outcome. */
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
    case "ids":
      return operations.ids(task[1]);
    case "findAll":
      return operations.findAll(task[1], task[2]);
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

import type { HcnDocument, HcnModify } from "./hcn.ts";
import type { HcnKind, NativeFailure } from "./native.ts";

/** What the main thread asks of one that may block: the methods of `HcnOperations`, with their arguments. */
export type HcnTask =
  | readonly [method: "list", kind: HcnKind]
  | readonly [method: "find", kind: HcnKind, id: string]
  | readonly [method: "create", kind: HcnKind, id: string | undefined, settings: HcnDocument, networkId?: string]
  | readonly [method: "modify", kind: HcnKind, id: string, request: HcnModify]
  | readonly [method: "remove", kind: HcnKind, id: string]
  | readonly [method: "attach" | "detach", namespaceId: string, endpointId: string]
  | readonly [method: "hnsCall", verb: string, path: string, body: HcnDocument | undefined];

/** What it answers. */
export type HcnOutcome =
  | { readonly t: "done"; readonly value: unknown }
  | { readonly t: "failed"; readonly failure: NativeFailure };

import { byPort } from "./by-port.ts";
import { denying } from "./denying.ts";
import type { NetpolCase } from "./netpol-case.ts";
import { selecting } from "./selecting.ts";
import { together } from "./together.ts";

/** The suite of Kubernetes (test/e2e/network/netpol): what its 48 cases ask, with objects and tables of our own. */
export const netpolCases: readonly NetpolCase[] = [...denying, ...selecting, ...byPort, ...together];

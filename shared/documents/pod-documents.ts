import { boolean, type Infer, integer, object, oneOf, optional, required, textThat } from "../schema/mod.ts";
import { attachmentKeys, count, digits, headOf, omitted, rows, sentence, values } from "./parts.ts";

/** What a node has of pods: attachments, leases, the addresses of its networks. */

export const podsSchema = object({
  ...headOf("pods"),
  pods: required(
    rows(
      object({
        podNamespace: optional(sentence, "absent where the runtime did not name the pod"),
        podName: optional(sentence),
        podUid: optional(sentence),
        ...attachmentKeys,
        hostIfname: required(sentence, "the interface on the node"),
        ownLease: required(boolean, "the address is a lease of Pipette's own allocator"),
        addresses: required(values(sentence), "with prefix length; none where another IPAM plugin keeps them"),
        gateway: optional(sentence),
        mac: optional(sentence),
        port: optional(integer(1, 0xff_ff_ff_ff), "the OpenFlow port, or the bridge's"),
        vnid: optional(integer(0, 0xff_ff_ff), "the project's number, where the data path keeps projects apart"),
      }),
    ),
    "one for each attachment",
  ),
  omitted,
});

export type PodsDocument = Infer<typeof podsSchema>;
export type DocumentPod = PodsDocument["pods"][number];

/** As `pipette ipam list --json` has them. */
export const leasesSchema = object({
  ...headOf("leases"),
  leases: required(
    rows(
      object({
        network: required(sentence),
        address: required(sentence, "with prefix length"),
        gateway: optional(sentence),
        state: required(oneOf(["allocated", "releasing", "cooling"])),
        containerId: required(sentence),
        ifname: required(sentence),
        podNamespace: optional(sentence),
        podName: optional(sentence),
        podUid: optional(sentence),
        rangeSet: required(count, "which range set of the network it is from"),
        bootId: optional(sentence, "the boot in which it was given out"),
        generation: required(count, "tells it from a later lease of the same owner"),
        allocatedAt: required(sentence, "RFC 3339"),
        releasedAt: optional(sentence),
      }),
    ),
    "by network and address",
  ),
  omitted,
});

export type LeasesDocument = Infer<typeof leasesSchema>;
export type DocumentLease = LeasesDocument["leases"][number];

/** What a letter of `cells` says. */
export const cellLetters = {
  a: "allocated",
  r: "releasing",
  c: "cooling",
  x: "excluded",
  g: "gateway",
  ".": "free",
} as const;
export type CellLetter = keyof typeof cellLetters;

/** Cells of one strip: `pipette ipam map` draws as many. */
const maxCells = 4096;

const isCells = (text: string): boolean =>
  text.length <= maxCells && [...text].every((letter) => Object.hasOwn(cellLetters, letter));

export const addressesSchema = object({
  ...headOf("addresses"),
  pools: required(
    values(
      object({
        network: required(sentence),
        range: required(sentence, "`start-end`, several with commas between"),
        gateways: required(values(sentence)),
        total: required(digits, "addresses that can be given out"),
        allocated: required(count),
        releasing: required(count),
        cooling: required(count),
        excluded: required(digits),
        free: required(digits),
        strips: required(
          values(
            object({
              first: required(sentence, "the address of the first cell"),
              last: required(sentence),
              addressesPerCell: required(digits, "cells begin at its multiples"),
              cells: required(
                textThat(`at most ${maxCells} letters of ${Object.keys(cellLetters).join("")}`, isCells),
                "a letter for each cell: `a` allocated, `r` releasing, `c` cooling, `x` excluded, `g` gateway, `.` free",
              ),
              rest: optional(sentence, "the part behind, in which nothing is taken"),
            }),
          ),
          "the addresses in their order, for a picture",
        ),
      }),
    ),
    "one for each range set of each network",
  ),
  omitted,
});

export type AddressesDocument = Infer<typeof addressesSchema>;
export type DocumentPool = AddressesDocument["pools"][number];

/** Who had the addresses of a node, and when. What is held now is part of it, without an end. */
export const historySchema = object({
  ...headOf("history"),
  sinceMs: optional(count, "milliseconds since 1970: what ended before is not kept any more, or never was"),
  history: required(
    rows(
      object({
        network: required(sentence),
        address: required(sentence, "without prefix length"),
        containerId: required(sentence, "the sandbox"),
        ifname: required(sentence),
        podNamespace: optional(sentence, "absent where the runtime did not name the pod"),
        podName: optional(sentence),
        podUid: optional(sentence),
        fromMs: required(count, "milliseconds since 1970"),
        untilMs: optional(count, "when its owner left it; absent: it has it still"),
        generation: required(count, "of the lease"),
      }),
    ),
    "the latest to begin first",
  ),
  omitted,
});

export type HistoryDocument = Infer<typeof historySchema>;
export type DocumentPeriod = HistoryDocument["history"][number];

/** State of nodes in the cluster, as agents write it and a controller watches it. */

/** PipetteNodes at the API server. */
export const nodeResource = {
  apiVersion: "pipette.io/v1alpha1",
  kind: "PipetteNode",
  path: "/apis/pipette.io/v1alpha1/pipettenodes",
} as const;

/** The controllers' own object. */
export const controllerResource = {
  apiVersion: "pipette.io/v1alpha1",
  kind: "PipetteController",
  path: "/apis/pipette.io/v1alpha1/pipettecontrollers",
} as const;

/** The label of the Leases, with which a controller lists them. */
export const leaseLabel = "pipette.io/node=agent";

/** The name of a node's Lease: no node can have one of another's, or one of ours. */
export const nodeLease = (node: string): string => `pipette-node.${node}`;

export const presenceTimes = {
  /** 5,000 nodes write 250 Leases a second: half as many as their kubelets do. */
  beatMs: 20_000,
  /** So many beats may be missing before a node counts as silent. */
  missedBeats: 3,
  /** Content is looked at, and written where it has changed. */
  contentMs: 60_000,
} as const;

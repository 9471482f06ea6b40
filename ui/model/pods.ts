/** What a pod is called, as commands take it; by its sandbox where the runtime has not told the name. */
export const podName = (of: {
  readonly podNamespace?: string;
  readonly podName?: string;
  readonly containerId: string;
}): string => (of.podName === undefined ? of.containerId : `${of.podNamespace ?? "default"}/${of.podName}`);

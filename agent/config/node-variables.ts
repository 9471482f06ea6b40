/**
 * What the DaemonSets have the kubelet say of the node that a pod is on (the downward API), so that one agent.yaml serves
 * all nodes. Variables, not options: `kubectl exec` gives them to every command, and all commands read agent.yaml.
 */
export const nodeVariables = { name: "PIPETTE_NODE_NAME", address: "PIPETTE_NODE_ADDRESS" } as const;

/** An empty one says nothing. */
export const nodeVariable = (which: keyof typeof nodeVariables): string | undefined =>
  process.env[nodeVariables[which]] || undefined;

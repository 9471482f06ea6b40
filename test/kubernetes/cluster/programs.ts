import { join } from "node:path";

/** Where the programs of Kubernetes lie. */
const directory = process.env["KUBEBUILDER_ASSETS"] ?? "/usr/local/kubebuilder/bin";
export const program = (name: string): string => join(directory, name);

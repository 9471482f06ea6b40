/** What our own sentences mean, for an agent that tells Kubernetes of them. */
export { symptomOf } from "./symptoms.ts";

import type { Pod } from "./types.ts";

/** As people name it: `namespace/name`. podman's containers have no namespace, and are named as podman does. */
export const podTitle = ({ namespace, name }: Pick<Pod, "namespace" | "name">): string =>
  namespace === "" ? name : `${namespace}/${name}`;

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { hrefTo } from "./route.ts";
import { documentsOf } from "./stream/store.ts";

const isOpen = signal(false);
const text = signal("");
/** Followed only while somebody looks for something. */
export const searchTopics = signal<readonly string[]>([]);

const mostFound = 12;

interface Hit {
  readonly kind: string;
  readonly name: string;
  readonly note: string;
  readonly href: string;
}

/** Finds a node, a pod by name, address, MAC or container, and a service. `/` leads here. */
export function Search() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (event.key !== "/" || isTyping) return;
      event.preventDefault();
      input.current?.focus();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
  const close = (): void => {
    isOpen.value = false;
    searchTopics.value = [];
  };
  const open = (): void => {
    isOpen.value = true;
    searchTopics.value = ["*/pods", "*/services"];
  };
  const hits = isOpen.value && text.value.trim().length > 1 ? found(text.value.trim().toLowerCase()) : undefined;
  return (
    <search
      onKeyDown={(event) => {
        if (event.key === "Escape") close();
      }}
    >
      <input
        ref={input}
        type="search"
        aria-label="Search for a pod, node, address, service, MAC or container"
        placeholder="Search  /"
        spellcheck={false}
        value={text.value}
        onFocus={open}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          if (!isOpen.value) open();
        }}
      />
      {hits !== undefined && (
        <div class="hits">
          {hits.length === 0 && <p class="quiet">Nothing is called so, as far as the nodes have answered</p>}
          <ul>
            {hits.map(({ kind, name, note, href }) => (
              <li key={`${kind} ${name} ${note}`}>
                <a href={href} onClick={close}>
                  <b>{name}</b> <span class="quiet">{`${kind}, ${note}`}</span>
                </a>
              </li>
            ))}
          </ul>
        </div>
      )}
    </search>
  );
}

function found(wanted: string): readonly Hit[] {
  const hits: Hit[] = [];
  for (const { node } of documentsOf("node"))
    if (node.includes(wanted))
      hits.push({ kind: "node", name: node, note: "its state", href: hrefTo("map", { node }) });
  for (const { node, document } of documentsOf("pods"))
    for (const pod of document?.pods ?? []) {
      if (hits.length >= mostFound) return hits;
      const name = pod.podName === undefined ? pod.containerId : `${pod.podNamespace ?? ""}/${pod.podName}`;
      const all = [name, pod.containerId, pod.mac ?? "", pod.hostIfname, ...pod.addresses];
      if (!all.some((each) => each.toLowerCase().includes(wanted))) continue;
      const note = `${pod.addresses.join(", ") || pod.hostIfname} on ${node}`;
      hits.push({ kind: "pod", name, note, href: hrefTo("map", { node, pod: pod.containerId }) });
    }
  for (const { node, document } of documentsOf("services"))
    for (const { key, clusterIp } of document?.services ?? []) {
      if (hits.length >= mostFound) return hits;
      if (!key.toLowerCase().includes(wanted) && !clusterIp.includes(wanted)) continue;
      if (hits.some(({ kind, name }) => kind === "service" && name === key)) continue;
      hits.push({ kind: "service", name: key, note: clusterIp, href: hrefTo("map", { node }) });
    }
  return hits;
}

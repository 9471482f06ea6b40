import { Refusal } from "../../shared/access/mod.ts";
import type { Exchange } from "../../shared/https/mod.ts";
import type { Encoding, WatchedResource, Watches } from "../watches/mod.ts";

/** A watch ends after this long, and the client starts over: so that clients spread over all replicas. */
const shortestWatchS = 60 * 60;
const longestWatchS = 2 * shortestWatchS;

/** Kubernetes' names of nodes are DNS subdomains. */
const nodeName = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/;

/** The node that a field selector names: the only thing by which anything is selected here. @throws {Refusal} */
export function selectedNode(query: URLSearchParams): string | undefined {
  const selector = query.get("fieldSelector") ?? "";
  if ((query.get("labelSelector") ?? "") !== "") throw new Refusal(400, "these objects have no labels to select by");
  if (selector === "") return undefined;
  const [, node = ""] = /^nodeName==?([^,]*)$/.exec(selector) ?? [];
  if (!nodeName.test(node))
    throw new Refusal(400, `the field selector is "${selector.slice(0, 300)}", wanted nodeName=NODE`);
  return node;
}

export const isWatch = (query: URLSearchParams): boolean => ["true", "1"].includes(query.get("watch") ?? "");

/** Answers with what a node needs, and then each change. @param resource absent: everything, in order */
export function serveWatch(
  exchange: Exchange,
  watches: Watches,
  { node, resource, encoding }: { node: string; resource: WatchedResource | undefined; encoding: Encoding },
): void {
  const { query } = exchange;
  // Whatever is wrong with the request is said before the answer begins.
  const lifetimeMs = lifetimeS(query) * 1000;
  const isWatchList = query.get("sendInitialEvents") === "true" && query.get("allowWatchBookmarks") === "true";
  const out = exchange.stream(
    encoding === "json" ? "application/json" : "application/vnd.kubernetes.protobuf;stream=watch",
    {
      drained: () => watch.drained(),
      closed: () => {
        clearTimeout(ending);
        watch.closed();
      },
    },
  );
  const watch = watches.open({ node, resource, encoding, isWatchList }, out);
  const ending = setTimeout(() => watch.end(), lifetimeMs);
}

function lifetimeS(query: URLSearchParams): number {
  const asked = query.get("timeoutSeconds");
  if (asked === null) return shortestWatchS + Math.random() * (longestWatchS - shortestWatchS);
  if (!/^\d{1,9}$/.test(asked)) throw new Refusal(400, "timeoutSeconds is no number of seconds");
  // A client that asks for none at all means no end.
  return Math.min(Number(asked) || longestWatchS, longestWatchS);
}

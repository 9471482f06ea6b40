import { PairMatrix } from "../map/pair-matrix.tsx";
import { type MapNode, RingPicture } from "../map/ring-picture.tsx";
import { healthOf } from "../model/node-health.ts";
import { namesOf, type Pair, pairsOf } from "../model/peers.ts";
import { podName } from "../model/pods.ts";
import { mostInRing } from "../model/ring.ts";
import { type Health, Mark, worst } from "../parts/mark.tsx";
import { Card, Faults, Page } from "../parts/page.tsx";
import { Table } from "../parts/table.tsx";
import { counted, listed } from "../parts/words.ts";
import { hrefTo, refine, route } from "../route.ts";
import { can } from "../stream/connection.ts";
import { documentsOf } from "../stream/store.ts";
import { NodeWays } from "./node-ways.tsx";

export function MapPage() {
  const states = documentsOf("node");
  const pods = new Map(documentsOf("pods").map(({ node, document }) => [node, document]));
  const asked = states.map((entry): MapNode => {
    const document = pods.get(entry.node);
    const isTold = document !== undefined;
    return {
      health: healthOf(entry),
      pods: document?.pods ?? [],
      omitted: document?.omitted ?? 0,
      ...(isTold ? {} : { isAsked: false }),
    };
  });
  const peers = documentsOf("peers");
  const names = namesOf(
    asked.map(({ health }) => health.node),
    peers,
  );
  const nodes = names.map((name) => asked.find(({ health }) => health.node === name) ?? toldOf(name));
  // A node on its own knows no others, and is not to.
  const pairs = names.length > 1 ? pairsOf(peers, names) : [];
  const { node: chosen = "", pod = "" } = route.value.query;
  const choose = (node: string): void => refine({ node: node === chosen ? "" : node, pod: "" });
  const shown = asked.find(({ health }) => health.node === chosen) ?? (asked.length === 1 ? asked[0] : undefined);
  return (
    <Page title="Map" health={overall(asked, pairs)} answer={answerOf(asked, pairs)}>
      <Faults of={[...states, ...peers]} />
      <Card title={names.length > mostInRing ? "What each node says of each other one" : "Nodes and their pods"}>
        {names.length > mostInRing ? (
          <PairMatrix names={names} pairs={pairs} onChoose={choose} />
        ) : (
          <RingPicture nodes={nodes} pairs={pairs} chosen={chosen} chosenPod={pod} onChoose={choose} />
        )}
      </Card>
      {asked.length > names.length && (
        <p class="quiet">{counted(asked.length - names.length, "node")} more are not compared with each other</p>
      )}
      <PairTroubles pairs={pairs} />
      {shown !== undefined && <NodeWays node={shown.health.node} pairs={pairs} />}
      {shown !== undefined && <NodePods node={shown} chosen={pod} />}
    </Page>
  );
}

/** One that others tell of, and that is not asked here. */
const toldOf = (node: string): MapNode => ({
  health: { node, health: "unknown", word: "not asked here", reasons: [] },
  pods: [],
  omitted: 0,
  isAsked: false,
});

function overall(nodes: readonly MapNode[], pairs: readonly Pair[]): Health {
  if (nodes.length === 0) return "unknown";
  return worst([...nodes.map(({ health }) => health.health), ...pairs.filter(isTroubled).map(({ health }) => health)]);
}

/** What is connected to what? */
function answerOf(nodes: readonly MapNode[], pairs: readonly Pair[]): string {
  const count = nodes.reduce((sum, { pods, omitted }) => sum + pods.length + omitted, 0);
  if (nodes.length === 0) return "No node has answered yet.";
  const all = `${counted(count, "pod")} on ${counted(nodes.length, "node")}`;
  if (pairs.length === 0) return `${all}, which is on its own.`.replace("nodes, which is", "nodes, each of which is");
  const isAsked = new Set(nodes.map(({ health }) => health.node));
  if (pairs.some(({ isPending, from }) => isPending && isAsked.has(from))) return `${all}, so far.`;
  const bad = pairs.filter(isTroubled);
  const asFar = pairs.some(({ isPending }) => isPending) ? ", as far as they are asked" : "";
  if (bad.length === 0) return `${all}; every node has a way to every other${asFar}.`;
  return `${all}; ${counted(bad.length, "way")} between nodes of ${pairs.length} ${bad.length === 1 ? "is" : "are"} not fine: ${listed(
    bad.map(({ from, to }) => `${from} to ${to}`),
    2,
  )}.`;
}

const isTroubled = ({ health, isPending }: Pair): boolean => health !== "good" && isPending !== true;

function PairTroubles({ pairs }: { readonly pairs: readonly Pair[] }) {
  const troubled = pairs.filter(isTroubled);
  if (troubled.length === 0) return null;
  return (
    <Card title="Ways that are not fine">
      <Table
        caption="Ways between nodes that are not fine"
        columns={[
          { title: "From", text: ({ from }) => from },
          { title: "To", text: ({ to }) => to },
          { title: "What", text: ({ word }) => word, cell: ({ health, word }) => <Mark health={health}>{word}</Mark> },
        ]}
        rows={troubled}
        keyOf={({ from, to }) => `${from} ${to}`}
        empty=""
      />
    </Card>
  );
}

function NodePods({
  node: { health, pods, omitted, isAsked },
  chosen,
}: {
  readonly node: MapNode;
  readonly chosen: string;
}) {
  const { node } = health;
  const rows = chosen === "" ? pods : pods.filter(({ containerId }) => containerId === chosen);
  return (
    <Card title={`Pods of ${node}`}>
      {health.reasons.length > 0 && (
        <ul class="reasons">
          {health.reasons.slice(0, 10).map((reason) => (
            <li key={reason}>
              <Mark health={health.health}>{reason}</Mark>
            </li>
          ))}
        </ul>
      )}
      {chosen !== "" && (
        <p>
          <button type="button" onClick={() => refine({ pod: "" })}>
            All pods of {node}
          </button>
        </p>
      )}
      <Table
        caption={`Pods of ${node}`}
        columns={[
          { title: "Pod", text: podName },
          {
            title: "Addresses",
            text: ({ addresses }) => addresses.join(", "),
            cell: ({ addresses }) =>
              addresses.map((address) => {
                const plain = address.split("/")[0];
                return (
                  <span key={address}>
                    <a href={hrefTo("addresses", { node, address: plain })}>{plain}</a>{" "}
                  </span>
                );
              }),
          },
          { title: "MAC", text: ({ mac = "" }) => mac },
          { title: "Interface", text: ({ hostIfname }) => hostIfname },
          { title: "Port", text: ({ port = "" }) => port, isNumber: true },
          { title: "Network", text: ({ network }) => network },
          {
            title: "Ask",
            text: podName,
            cell: (pod) => (
              <>
                {can("trace") && <a href={hrefTo("trace", { from: podName(pod) })}>trace</a>}{" "}
                {can("why") && <a href={hrefTo("policies", { from: podName(pod) })}>policies</a>}
              </>
            ),
          },
        ]}
        rows={rows}
        omitted={omitted}
        keyOf={({ network, containerId, ifname }) => `${network} ${containerId} ${ifname}`}
        empty={isAsked === false ? "Not told yet" : "No pod has an interface here"}
      />
    </Card>
  );
}

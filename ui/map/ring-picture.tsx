import type { DocumentPod } from "../../shared/documents/mod.ts";
import type { NodeHealth } from "../model/node-health.ts";
import type { Pair } from "../model/peers.ts";
import { card, type Point, ringOf } from "../model/ring.ts";
import { type Health, worst } from "../parts/mark.tsx";
import { counted } from "../parts/words.ts";

/** Dots of a card; the others are a number. */
const mostDots = 57;
const dotsInRow = 19;
const dotStep = 9.5;

export interface MapNode {
  readonly health: NodeHealth;
  readonly pods: readonly DocumentPod[];
  /** That the document itself has left out. */
  readonly omitted: number;
  /** Its pods are not known, or not yet; absent: they are. */
  readonly isAsked?: false;
}

interface PictureProps {
  readonly nodes: readonly MapNode[];
  readonly pairs: readonly Pair[];
  readonly chosen: string;
  readonly chosenPod: string;
  readonly onChoose: (node: string) => void;
}

/** Up to twelve nodes with their pods, and what they say of each other. */
export function RingPicture({ nodes, pairs, chosen, chosenPod, onChoose }: PictureProps) {
  const ring = ringOf(nodes.length);
  const placeOf = new Map(nodes.map(({ health }, i) => [health.node, ring.places[i] ?? { x: 0, y: 0 }]));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="scroll" tabIndex={0} aria-label="The nodes in a ring">
      {/* biome-ignore lint/a11y/useSemanticElements: a picture with things to press in it. */}
      <svg
        class="map"
        viewBox={`0 0 ${ring.width} ${ring.height}`}
        width={ring.width}
        role="group"
        aria-label={`${counted(nodes.length, "node")} with their pods, and lines between those that know each other`}
      >
        <g>
          {linesOf(pairs).map(({ from, to, health }) => (
            <PairLine
              key={`${from} ${to}`}
              from={placeOf.get(from)}
              to={placeOf.get(to)}
              health={health}
              isFaint={chosen !== "" && chosen !== from && chosen !== to}
            />
          ))}
        </g>
        {nodes.map((node) => (
          <NodeCard
            key={node.health.node}
            node={node}
            at={placeOf.get(node.health.node) ?? { x: 0, y: 0 }}
            isChosen={chosen === node.health.node}
            chosenPod={chosenPod}
            onChoose={onChoose}
          />
        ))}
      </svg>
    </section>
  );
}

/** One line for both directions, as bad as the worse of them. */
function linesOf(pairs: readonly Pair[]): readonly Pick<Pair, "from" | "to" | "health">[] {
  const lines = new Map<string, { from: string; to: string; health: Health }>();
  for (const { from, to, health, isPending } of pairs) {
    if (isPending) continue;
    const key = from < to ? `${from} ${to}` : `${to} ${from}`;
    const other = lines.get(key)?.health;
    lines.set(key, { from, to, health: other === undefined ? health : worst([health, other]) });
  }
  return [...lines.values()];
}

interface LineProps {
  readonly from: Point | undefined;
  readonly to: Point | undefined;
  readonly health: Health;
  readonly isFaint: boolean;
}

function PairLine({ from, to, health, isFaint }: LineProps) {
  if (from === undefined || to === undefined) return null;
  return <line class={`pair ${health}${isFaint ? " faint" : ""}`} x1={from.x} y1={from.y} x2={to.x} y2={to.y} />;
}

interface NodeCardProps {
  readonly node: MapNode;
  readonly at: Point;
  readonly isChosen: boolean;
  readonly chosenPod: string;
  readonly onChoose: (node: string) => void;
}

function NodeCard({ node: { health, pods, omitted, isAsked }, at, isChosen, chosenPod, onChoose }: NodeCardProps) {
  const count = pods.length + omitted;
  const dots = pods.slice(0, mostDots);
  const rest = count - dots.length;
  const number = isAsked === false ? "" : rest > 0 ? `and ${counted(rest, "more pod")}` : counted(count, "pod");
  const title = `${health.node} ${health.word} ${number}`;
  return (
    // biome-ignore lint/a11y/useSemanticElements: inside of an SVG there are no buttons.
    <g
      role="button"
      tabIndex={0}
      aria-pressed={isChosen}
      class={`node ${health.health}${isChosen ? " chosen" : ""}`}
      transform={`translate(${at.x - card.width / 2} ${at.y - card.height / 2})`}
      onClick={() => onChoose(health.node)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        onChoose(health.node);
      }}
    >
      <title>{title}</title>
      <rect width={card.width} height={card.height} rx="8" />
      <text x="12" y="22" class="name">
        {short(health.node, 22)}
      </text>
      <text x="12" y="40" class="word">
        {short(health.word, 28)}
      </text>
      {dots.map(({ containerId, ifname }, i) => (
        <circle
          key={`${containerId} ${ifname}`}
          class={containerId === chosenPod ? "pod chosen" : "pod"}
          cx={14 + (i % dotsInRow) * dotStep}
          cy={56 + Math.floor(i / dotsInRow) * dotStep}
          r={containerId === chosenPod ? 4.5 : 3.2}
        />
      ))}
      <text x="12" y={card.height - 9} class="word">
        {number}
      </text>
    </g>
  );
}

/** An SVG's text does not wrap. The whole is in its title. */
const short = (text: string, most: number): string => {
  const letters = [...text];
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
};

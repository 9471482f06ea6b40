const [stepWidth, stepHeight, across, down] = [150, 46, 174, 74];
/** Steps in a line; the next goes back below. */
const inLine = 6;

export interface Stop {
  readonly title: string;
  readonly kind: "end" | "step" | "drop" | "node";
}

/** What a packet passes, from its sender to where it ends: tables, and nodes where there are several. */
export function PathPicture({ stops, verdict }: { readonly stops: readonly Stop[]; readonly verdict: string }) {
  const lines = Math.ceil(stops.length / inLine);
  const width = Math.min(stops.length, inLine) * across;
  // There and back, so that one leads to the next.
  const place = (i: number) => {
    const [line, at] = [Math.floor(i / inLine), i % inLine];
    return { x: (line % 2 === 0 ? at : inLine - 1 - at) * across + 2, y: line * down + 2 };
  };
  const way = stops.map((_, i) => {
    const { x, y } = place(i);
    return `${i === 0 ? "M" : "L"}${x + stepWidth / 2} ${y + stepHeight / 2}`;
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard.
    <section class="scroll" tabIndex={0} aria-label="The way as a picture">
      <svg
        class="path"
        viewBox={`0 0 ${width} ${lines * down}`}
        width={width}
        role="img"
        aria-label={`${stops.map(({ title }) => title).join(", then ")}: ${verdict}`}
      >
        <path d={way.join("")} class="way" />
        {stops.map(({ title, kind }, i) => {
          const { x, y } = place(i);
          return (
            <g key={i} class={kind} transform={`translate(${x} ${y})`}>
              <title>{title}</title>
              <rect width={stepWidth} height={stepHeight} rx={kind === "step" ? 6 : kind === "node" ? 0 : 22} />
              <text x={stepWidth / 2} y={stepHeight / 2 + 4}>
                {title.length > 20 ? `${title.slice(0, 19)}…` : title}
              </text>
            </g>
          );
        })}
        <circle r="6" class="packet">
          <animateMotion dur={`${stops.length * 0.35}s`} fill="freeze" {...{ path: way.join("") }} />
        </circle>
      </svg>
    </section>
  );
}

/** How the states of an address look: a colour, and a pattern for those who do not see it. */

interface CellState {
  readonly word: string;
  /** Custom property of the colour. */
  readonly colour: string;
  readonly pattern: "full" | "half" | "dot" | "cross" | "frame" | "ring";
}

export const cellStates: Readonly<Record<string, CellState>> = {
  a: { word: "allocated", colour: "--accent", pattern: "full" },
  r: { word: "releasing", colour: "--warn", pattern: "half" },
  c: { word: "cooling", colour: "--cool", pattern: "dot" },
  x: { word: "excluded", colour: "--quiet", pattern: "cross" },
  g: { word: "gateway", colour: "--text", pattern: "ring" },
  ".": { word: "free", colour: "--line", pattern: "frame" },
};

interface Place {
  readonly x: number;
  readonly y: number;
  readonly size: number;
}

export function paintCell(
  context: CanvasRenderingContext2D,
  letter: string,
  { x, y, size }: Place,
  style: CSSStyleDeclaration,
): void {
  const state = cellStates[letter] ?? cellStates["."];
  if (state === undefined) return;
  const colour = style.getPropertyValue(state.colour);
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = 1;
  const middle = size / 2;
  switch (state.pattern) {
    case "full":
      context.fillRect(x, y, size, size);
      return;
    case "half":
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      context.fillRect(x, y + middle, size, middle);
      return;
    case "dot":
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
      context.fillRect(x + middle - 2, y + middle - 2, 4, 4);
      return;
    case "cross":
      context.beginPath();
      context.moveTo(x + 1, y + 1);
      context.lineTo(x + size - 1, y + size - 1);
      context.moveTo(x + size - 1, y + 1);
      context.lineTo(x + 1, y + size - 1);
      context.stroke();
      return;
    case "ring":
      context.beginPath();
      context.arc(x + middle, y + middle, middle - 1.5, 0, 2 * Math.PI);
      context.lineWidth = 2;
      context.stroke();
      return;
    case "frame":
      context.strokeRect(x + 0.5, y + 0.5, size - 1, size - 1);
  }
}

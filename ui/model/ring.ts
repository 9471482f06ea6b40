/** Where things stand in a picture: by number, so that nothing jumps and the same cluster looks the same. */

export interface Point {
  readonly x: number;
  readonly y: number;
}

export interface Ring {
  readonly width: number;
  readonly height: number;
  /** Middles of the cards, the first at the top, clockwise. */
  readonly places: readonly Point[];
}

/** Of a node's card, in the units of the picture. */
export const card = { width: 196, height: 104, gap: 28 } as const;

/** The most nodes that stand in a ring: with more, lines between all of them say nothing. */
export const mostInRing = 12;

/** Cards around an ellipse, none of which covers another. */
export function ringOf(count: number): Ring {
  const { width, height, gap } = card;
  if (count <= 1)
    return { width: width + gap, height: height + gap, places: [{ x: (width + gap) / 2, y: (height + gap) / 2 }] };
  if (count === 2) {
    const wide = 2 * width + 6 * gap;
    const y = (height + 2 * gap) / 2;
    return {
      width: wide,
      height: height + 2 * gap,
      places: [
        { x: width / 2 + gap / 2, y },
        { x: wide - width / 2 - gap / 2, y },
      ],
    };
  }
  // The ellipse grows until no two cards meet.
  for (let radius = 120; ; radius += 10) {
    const [rx, ry] = [radius * 1.5, radius];
    const places = Array.from({ length: count }, (_, i) => {
      const angle = -Math.PI / 2 + (2 * Math.PI * i) / count;
      return {
        x: rx * (1 + Math.cos(angle)) + width / 2 + gap / 2,
        y: ry * (1 + Math.sin(angle)) + height / 2 + gap / 2,
      };
    });
    const meets = places.some((a, i) =>
      places.some((b, j) => j > i && Math.abs(a.x - b.x) < width + gap && Math.abs(a.y - b.y) < height + gap),
    );
    if (!meets) return { width: 2 * rx + width + gap, height: 2 * ry + height + gap, places };
  }
}

/**
 * Where tests begin that choose at random: the same for the same change, whose landing must not be a matter of luck.
 * `PIPETTE_SEED` is another one; the long runs (`npm run soak`, `fuzz`, `bench:storms`) draw a new one each time.
 */
export const seed = Number(process.env["PIPETTE_SEED"] ?? 1);

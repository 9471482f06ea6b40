/**
 * The seed of random tests: constant, so that their outcome is not a matter of luck. `PIPETTE_SEED` sets another one;
 * the long runs (`npm run soak`, `fuzz`, `bench:storms`) draw a new one each time.
 */
export const seed = Number(process.env["PIPETTE_SEED"] ?? 1);

import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compileSmallProgram } from "../../build/forward.ts";

/** The plugins' executables as an installed Pipette has them: the small program of forward/ under both names. */
export interface Front {
  readonly pipette: string;
  readonly ipam: string;
}

interface FrontPlaces {
  /** Absent: nobody listens. */
  readonly agentSocket?: string;
  readonly ipamSocket?: string;
  readonly wholeProgram: string;
}

/**
 * Compiles it with places of this run's own, where no other Pipette of the machine answers.
 * @param dist directory with the whole program that it stands in front of
 */
export async function compileFront(directory: string, dist: string, places: FrontPlaces): Promise<Front> {
  mkdirSync(directory, { recursive: true });
  const front = { pipette: join(directory, "pipette"), ipam: join(directory, "pipette-ipam") };
  const nobody = join(directory, "nobody.sock");
  await compileSmallProgram({
    system: "linux",
    outfile: front.pipette,
    buildId: readFileSync(join(dist, ".stamp"), "utf8").slice(0, 32),
    places: { agentSocket: nobody, ipamSocket: nobody, ...places },
  });
  copyFileSync(front.pipette, front.ipam);
  return front;
}

/** What the system says of who may change a file or directory. */
export interface Ownership {
  readonly uid: number;
  readonly mode: number;
}

const writableByOthers = 0o022;

/**
 * What lets others than root and this user change it: `belongs to user 1000`, or `can be written by others (mode 777)`;
 * `undefined` where nothing does. A directory that somebody has made before us, at a place where everybody may, is
 * theirs: they can take out of it what we put there, and put something else in its place.
 */
export function letsOthersIn({ uid, mode }: Ownership): string | undefined {
  if (uid !== 0 && uid !== process.geteuid?.()) return `belongs to user ${uid}`;
  return (mode & writableByOthers) === 0 ? undefined : `can be written by others (mode ${(mode & 0o777).toString(8)})`;
}

export const ownershipRule = "only root, and whoever runs this, to be able to change it";

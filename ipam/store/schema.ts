/** Marks the file as ours ("PIPE"), beside SQLite's own header. */
export const applicationId = 0x50495045;

/**
 * Migrations of the database; `user_version` is the number of steps taken. A released step never changes: a new one is
 * added.
 *
 * `taken` holds the unbroken runs of addresses that have a lease, whatever its state, and follows from `lease`. The
 * next free address is one past the run that holds the requested one, so finding it is one look-up however full or
 * fragmented a network is, and changing ranges needs no conversion. `lease_left` finds what was released, oldest first;
 * `mark` keeps the generation counter and, per network and range set, the address given out last. `remembered` has one
 * row for each pod, interface and range set of a network that is sticky; `turn` grows, so the lowest is the oldest.
 */
export const migrations: readonly string[] = [
  `
  CREATE TABLE lease (
    network TEXT NOT NULL,
    address BLOB NOT NULL CHECK (length(address) = 16),
    prefix INTEGER NOT NULL,
    gateway BLOB CHECK (length(gateway) = 16),
    range_set INTEGER NOT NULL,
    sandbox_id TEXT NOT NULL,
    ifname TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('allocated', 'releasing', 'cooling')),
    pod_namespace TEXT,
    pod_name TEXT,
    pod_uid TEXT,
    boot_id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    allocated_at_ms INTEGER NOT NULL,
    released_at_ms INTEGER CHECK ((released_at_ms IS NULL) = (state = 'allocated')),
    PRIMARY KEY (network, address)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX lease_owner ON lease (network, sandbox_id, ifname);
  CREATE INDEX lease_left ON lease (network, state, released_at_ms) WHERE released_at_ms IS NOT NULL;
  CREATE TABLE taken (
    network TEXT NOT NULL,
    first BLOB NOT NULL CHECK (length(first) = 16),
    last BLOB NOT NULL CHECK (length(last) = 16 AND last >= first),
    PRIMARY KEY (network, first)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE mark (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE departure (
    network TEXT NOT NULL,
    sandbox_id TEXT NOT NULL,
    ifname TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    PRIMARY KEY (network, sandbox_id, ifname)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  ALTER TABLE lease ADD COLUMN sticky INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE remembered (
    turn INTEGER PRIMARY KEY,
    network TEXT NOT NULL,
    pod_namespace TEXT NOT NULL,
    pod_name TEXT NOT NULL,
    ifname TEXT NOT NULL,
    range_set INTEGER NOT NULL,
    address BLOB NOT NULL CHECK (length(address) = 16),
    UNIQUE (network, pod_namespace, pod_name, ifname, range_set)
  ) STRICT;
  `,
];

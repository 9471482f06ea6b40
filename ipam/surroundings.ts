/** What the allocator knows of the world around it. */
export interface Surroundings {
  /** Empty: unknown. */
  readonly bootId: string;
  /** Milliseconds since 1970. */
  now(): number;
  /** Where host-local may have kept leases before; absent: nowhere. */
  readonly dataDir?: string;
}

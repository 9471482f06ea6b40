import { dlopen } from "bun:ffi";
import { mkdirSync } from "node:fs";

const CLONE_NEWNS = 0x20000;
const MS_PRIVATE = 1 << 18;
const MS_REC = 1 << 14;
const directory = "/run/netns";

const libc = dlopen("libc.so.6", {
  unshare: { args: ["i32"], returns: "i32" },
  mount: { args: ["buffer", "buffer", "buffer", "u64", "buffer"], returns: "i32" },
} as const).symbols;

const text = (value: string): Uint8Array => new TextEncoder().encode(`${value}\0`);

let isOwn = false;

/**
 * Gives the calling thread, and what it starts from then on, a /run/netns of its own until this process ends. Agents and
 * `pipette doctor` look into every namespace that has a name there: of two test files at once each would find the
 * addresses of the other's pods.
 */
export function ownNamedNamespaces(): void {
  if (isOwn) return;
  mkdirSync(directory, { recursive: true });
  if (libc.unshare(CLONE_NEWNS) !== 0) throw new Error("Cannot make a mount namespace: not allowed");
  mount("none", "/", "none", MS_REC | MS_PRIVATE);
  mount("netns", directory, "tmpfs", 0);
  isOwn = true;
}

function mount(source: string, target: string, type: string, flags: number): void {
  if (libc.mount(text(source), text(target), text(type), flags, text("mode=755")) !== 0)
    throw new Error(`Cannot mount "${target}" for a test of its own: refused`);
}

import { effect, type ReadonlySignal, signal } from "@preact/signals";
import { enter, get, leave, mustBeWell, NotOpen, ownHeaders, post, whyNot } from "./calls.ts";
import { EventCutter, type StreamEvent } from "./sse.ts";
import { forget, take } from "./store.ts";
import type { About, CommandAnswer, CommandInput, Frame } from "./wire.ts";

/** How the page is connected. */
export type Link =
  | { readonly t: "connecting" }
  | { readonly t: "open" }
  | { readonly t: "lost"; readonly why: string; readonly sinceMs: number }
  /** The server does not know this browser. */
  | { readonly t: "refused"; readonly why: string }
  /** It does once somebody signs in. */
  | { readonly t: "signed out"; readonly hasEnded: boolean };

const linkState = signal<Link>({ t: "connecting" });
export const link: ReadonlySignal<Link> = linkState;

const skippedFrames = signal(0);
/** Frames that the server has left out, because this page read too slowly. */
export const skipped: ReadonlySignal<number> = skippedFrames;

const aboutState = signal<About | undefined>(undefined);
/** What the server is of; absent until it has said so. */
export const about: ReadonlySignal<About | undefined> = aboutState;

/** What the views want to see. */
export const topics = signal<readonly string[]>([]);

/** Counts who has signed in here, so that each begins anew. */
const signedIn = signal(0);

const [firstPauseMs, longestPauseMs] = [500, 10_000];
/** The server sends a heartbeat every 15 s. */
const silentMs = 40_000;

/** Up to where the page has heard everything, and of what. */
const heard: { id: string; kept: readonly string[] } = { id: "", kept: [] };

/** Exchanges the address's token, then follows the topics, until the page is closed. */
export async function connect(): Promise<void> {
  const token = /^#token=([\w-]+)$/.exec(location.hash)?.[1];
  if (token !== undefined) {
    // Out of the address before anything else, so that no bookmark has it.
    history.replaceState(undefined, "", "#/");
    await enter(token).catch(() => undefined);
  }
  let follow = new AbortController();
  effect(() => {
    const wanted = topics.value;
    signedIn.value;
    follow.abort();
    follow = new AbortController();
    void stay(wanted, follow.signal);
  });
}

/** Connects again as long as the same is wanted. */
async function stay(wanted: readonly string[], signal: AbortSignal): Promise<void> {
  let pauseMs = firstPauseMs;
  while (!signal.aborted && wanted.length > 0) {
    try {
      if (aboutState.value === undefined) aboutState.value = await get<About>("/api/v1/about");
      await read(wanted, signal, () => {
        pauseMs = firstPauseMs;
      });
    } catch (caught) {
      if (signal.aborted) return;
      const why = whyNot(caught);
      if (caught instanceof NotOpen) {
        if (caught.takesToken) close(aboutState.value !== undefined || hasEndedBefore());
        else linkState.value = { t: "refused", why };
        return;
      }
      if (linkState.value.t !== "lost") linkState.value = { t: "lost", why, sinceMs: Date.now() };
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    pauseMs = Math.min(2 * pauseMs, longestPauseMs);
  }
}

/** @throws {Error} with the server's reason */
export async function signIn(token: string): Promise<void> {
  await enter(token);
  linkState.value = { t: "connecting" };
  signedIn.value++;
}

export async function signOut(): Promise<void> {
  await leave().catch(() => undefined);
  close(false);
  // Ends the stream; the next one is told that nobody is signed in.
  signedIn.value++;
}

const hasEndedBefore = (): boolean => linkState.value.t === "signed out" && linkState.value.hasEnded;

/** @param hasEnded by itself */
function close(hasEnded: boolean): void {
  aboutState.value = undefined;
  heard.id = "";
  heard.kept = [];
  forget();
  linkState.value = { t: "signed out", hasEnded };
}

/** One stream, until it breaks. @throws {Error} always */
async function read(wanted: readonly string[], outer: AbortSignal, opened: () => void): Promise<void> {
  const silence = new AbortController();
  const timer = new Timer(silentMs, () => silence.abort(new Error("the server is silent")));
  const kept = wanted.filter((topic) => heard.kept.includes(topic));
  const query = new URLSearchParams({ topics: wanted.join(","), kept: kept.join(",") });
  const response = await fetch(`/api/v1/events?${query}`, {
    signal: AbortSignal.any([outer, silence.signal]),
    headers: { ...ownHeaders(), ...(heard.id === "" ? {} : { "last-event-id": heard.id }) },
  });
  await mustBeWell(response);
  const reader = (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()).getReader();
  const cutter = new EventCutter();
  linkState.value = { t: "open" };
  opened();
  try {
    for (;;) {
      timer.again();
      const { done, value } = await reader.read();
      if (done) throw new Error("the connection was closed");
      for (const event of cutter.take(value)) hear(event, wanted);
    }
  } finally {
    timer.stop();
    reader.cancel().catch(() => undefined);
  }
}

/** @throws {Error} for a change of something else than what there is: then everything is asked for anew */
function hear({ id, data }: StreamEvent, wanted: readonly string[]): void {
  const frame = JSON.parse(data) as Frame;
  skippedFrames.value += frame.skipped ?? 0;
  const fits = take(frame);
  heard.id = fits ? id : "";
  heard.kept = fits ? wanted : [];
  if (!fits) throw new Error("a change did not fit");
}

/** Ends what has been silent for too long. */
class Timer {
  readonly #ms: number;
  readonly #over: () => void;
  #running: ReturnType<typeof setTimeout> | undefined;

  constructor(ms: number, over: () => void) {
    this.#ms = ms;
    this.#over = over;
  }

  again(): void {
    this.stop();
    this.#running = setTimeout(this.#over, this.#ms);
  }

  stop(): void {
    clearTimeout(this.#running);
  }
}

/** Has the server run a command, or say which it would be. @throws {Error} with the server's reason */
export const run = (input: CommandInput): Promise<CommandAnswer> => post("/api/v1/commands", input);

export const can = (command: string): boolean => aboutState.value?.commands.includes(command) ?? false;

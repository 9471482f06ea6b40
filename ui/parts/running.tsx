import { type Signal, useSignal } from "@preact/signals";
import { whyNot } from "../stream/calls.ts";
import { run } from "../stream/connection.ts";
import type { CommandAnswer, CommandInput } from "../stream/wire.ts";

/** A command that the page has asked for. */
export type Running =
  | { readonly t: "none" }
  | { readonly t: "runs" }
  | { readonly t: "answered"; readonly answer: CommandAnswer }
  | { readonly t: "failed"; readonly why: string };

export function useRunning(): [Signal<Running>, (input: CommandInput) => Promise<void>] {
  const state = useSignal<Running>({ t: "none" });
  const start = async (input: CommandInput): Promise<void> => {
    state.value = { t: "runs" };
    try {
      state.value = { t: "answered", answer: await run(input) };
    } catch (caught) {
      state.value = { t: "failed", why: whyNot(caught) };
    }
  };
  return [state, start];
}

/** What the command said, unless that was an answer; and how somebody types it. */
export function Told({ of }: { readonly of: Running }) {
  switch (of.t) {
    case "none":
      return null;
    case "runs":
      return <p role="status">Asking…</p>;
    case "failed":
      return <p role="alert">{of.why}</p>;
    case "answered":
      return (
        <>
          {of.answer.json === undefined && <pre role="alert">{of.answer.said || "It said nothing."}</pre>}
          <p class="quiet">
            The same at a terminal: <code>{of.answer.line}</code>
          </p>
        </>
      );
  }
}

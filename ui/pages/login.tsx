import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Card } from "../parts/page.tsx";
import { whyNot } from "../stream/calls.ts";
import { signIn } from "../stream/connection.ts";

/** Who is it? A token goes out once, and is kept nowhere in the browser. */
export function Login({ hasEnded }: { readonly hasEnded: boolean }) {
  const field = useRef<HTMLInputElement>(null);
  const why = useSignal("");
  const isAsking = useSignal(false);
  useEffect(() => field.current?.focus(), []);
  const enter = async (): Promise<void> => {
    const token = field.current?.value.trim() ?? "";
    isAsking.value = true;
    try {
      await signIn(token);
    } catch (caught) {
      why.value = whyNot(caught);
      field.current?.focus();
    } finally {
      isAsking.value = false;
      if (field.current !== null) field.current.value = "";
    }
  };
  return (
    <main>
      <h1 tabIndex={-1}>Sign in</h1>
      <p class="answer">
        {hasEnded ? "The session has ended. Sign in again." : "Who are you? A token of the cluster tells."}
      </p>
      <Card title="With a token">
        <form
          class="login"
          onSubmit={(event) => {
            event.preventDefault();
            void enter();
          }}
        >
          <label for="token">Token</label>
          <input
            id="token"
            ref={field}
            type="password"
            autocomplete="off"
            spellcheck={false}
            required
            aria-describedby="token-how"
            aria-invalid={why.value !== ""}
          />
          <button type="submit" class="main" disabled={isAsking.value}>
            Sign in
          </button>
        </form>
        <p role="alert">{why.value}</p>
        <p class="quiet" id="token-how">
          For example that of <code>kubectl create token NAME</code>. What you may see is what its account may see; the
          session ends with the token.
        </p>
      </Card>
    </main>
  );
}

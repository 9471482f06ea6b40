import { effect, untracked } from "@preact/signals";
import type { ComponentType } from "preact";
import { Login } from "./pages/login.tsx";
import { pages } from "./pages/pages.ts";
import { Mark } from "./parts/mark.tsx";
import { age } from "./parts/words.ts";
import { hrefTo, route } from "./route.ts";
import { Search, searchTopics } from "./search.tsx";
import { about, link, signOut, skipped, topics } from "./stream/connection.ts";

/** What the shown view wants, and the search if somebody types there. */
effect(() => {
  const page = pageNow();
  const wanted = [...new Set(["*/node", ...page.topics(route.value), ...searchTopics.value])];
  if (wanted.join() !== untracked(() => topics.value).join()) topics.value = wanted;
  document.title = `${link.value.t === "signed out" ? "Sign in" : page.title} – Pipette`;
});

function pagesThere() {
  return pages.filter(({ isThere }) => isThere?.() !== false);
}

function pageNow() {
  const there = pagesThere();
  return there.find(({ name }) => name === route.value.page) ?? there[0] ?? pages[0]!;
}

export function App() {
  const page = pageNow();
  const View = page.view;
  const isIn = link.value.t !== "signed out";
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>("h1")?.focus()}>
        To the content
      </button>
      <header>
        <a class="brand" href={hrefTo("overview")}>
          Pipette
        </a>
        {isIn && (
          <>
            <nav aria-label="Views">
              <ul>
                {pagesThere().map(({ name, title }) => (
                  <li key={name}>
                    <a href={hrefTo(name)} aria-current={name === page.name ? "page" : undefined}>
                      {title}
                    </a>
                  </li>
                ))}
              </ul>
            </nav>
            {about.value?.withoutNodes === undefined && <Search />}
          </>
        )}
      </header>
      <div id="content">
        <Content now={link.value} view={View} />
      </div>
      <footer>
        <Connection />
        <SignedIn />
      </footer>
    </>
  );
}

interface ContentProps {
  readonly now: typeof link.value;
  readonly view: ComponentType;
}

function Content({ now, view: View }: ContentProps) {
  switch (now.t) {
    case "signed out":
      return <Login hasEnded={now.hasEnded} />;
    case "refused":
      return <NotOpen why={now.why} />;
    default:
      return <View />;
  }
}

function NotOpen({ why }: { readonly why: string }) {
  return (
    <main>
      <h1 tabIndex={-1}>Not open here</h1>
      <p class="answer">{why}.</p>
      <p>
        Each start of <code>pipette ui</code> opens the page in one browser. Start it again for another.
      </p>
    </main>
  );
}

function SignedIn() {
  const person = about.value?.person;
  if (person === undefined) return null;
  return (
    <p class="person">
      <span>
        Signed in as <bdi>{person}</bdi>
      </span>
      <button type="button" onClick={() => void signOut()}>
        Sign out
      </button>
    </p>
  );
}

function Connection() {
  const now = link.value;
  const told = about.value;
  const missed = skipped.value === 0 ? "" : `; ${skipped.value} updates were left out, because this browser was slow`;
  return (
    <p role="status">
      {now.t === "open" && (
        <Mark health="good">
          {told?.isLive === false ? "Shows" : "Follows"} {told?.title}
          {missed}
        </Mark>
      )}
      {now.t === "connecting" && <Mark health="unknown">Connecting</Mark>}
      {now.t === "lost" && (
        <Mark health="warn">
          Not connected since {age(Date.now() - now.sinceMs)}: {now.why}. What is shown is as old as that.
        </Mark>
      )}
      {told !== undefined && <span class="quiet"> Pipette {told.version}</span>}
    </p>
  );
}

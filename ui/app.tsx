import { effect, untracked } from "@preact/signals";
import { pages } from "./pages/pages.ts";
import { Mark } from "./parts/mark.tsx";
import { age } from "./parts/words.ts";
import { hrefTo, route } from "./route.ts";
import { Search, searchTopics } from "./search.tsx";
import { about, link, skipped, topics } from "./stream/connection.ts";

/** What the shown view wants, and the search if somebody types there. */
effect(() => {
  const page = pageNow();
  const wanted = [...new Set(["*/node", ...page.topics(route.value), ...searchTopics.value])];
  if (wanted.join() !== untracked(() => topics.value).join()) topics.value = wanted;
  document.title = `${page.title} – Pipette`;
});

function pageNow() {
  const named = pages.find(({ name }) => name === route.value.page);
  return named?.isThere?.() === false ? pages[0]! : (named ?? pages[0]!);
}

export function App() {
  const page = pageNow();
  const View = page.view;
  return (
    <>
      <button type="button" class="skip" onClick={() => document.querySelector<HTMLElement>("h1")?.focus()}>
        To the content
      </button>
      <header>
        <a class="brand" href={hrefTo("overview")}>
          Pipette
        </a>
        <nav aria-label="Views">
          <ul>
            {pages
              .filter(({ isThere }) => isThere?.() !== false)
              .map(({ name, title }) => (
                <li key={name}>
                  <a href={hrefTo(name)} aria-current={name === page.name ? "page" : undefined}>
                    {title}
                  </a>
                </li>
              ))}
          </ul>
        </nav>
        <Search />
      </header>
      <div id="content">{link.value.t === "refused" ? <NotOpen why={link.value.why} /> : <View />}</div>
      <footer>
        <Connection />
      </footer>
    </>
  );
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

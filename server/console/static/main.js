// The frame of the console: navigation, the page that the address names, the connection's state.

import { html, render, useEffect, useState } from "./vendor/preact.js";
import { get, watchConnection } from "./api.js";
import { CataloguePage } from "./pages/catalogue.js";
import { ClusterPage } from "./pages/cluster.js";
import { FunctionPage } from "./pages/function.js";
import { LineagePage } from "./pages/lineage.js";
import { QueriesPage } from "./pages/queries.js";
import { QueryPage } from "./pages/query.js";
import { SourcePage } from "./pages/source.js";
import { StatementsPage } from "./pages/statements.js";
import { TopicPage } from "./pages/topic.js";

const PAGES = {
  statements: StatementsPage, catalog: CataloguePage, source: SourcePage, topic: TopicPage, function: FunctionPage,
  lineage: LineagePage, queries: QueriesPage, query: QueryPage, cluster: ClusterPage,
};
const NAVIGATION = [["statements", "Editor"], ["catalog", "Catalog"], ["lineage", "Lineage"], ["queries", "Queries"], ["cluster", "Cluster"]];
const BELONGS = { source: "catalog", topic: "catalog", function: "catalog", query: "queries" };

function route() {
  const [page, ...parts] = location.hash.replace(/^#\//, "").split("/");
  try {
    return PAGES[page] ? [page, ...parts.map(decodeURIComponent)] : ["statements"];
  } catch {
    return ["statements"]; // an address with a broken escape
  }
}

function useRoute() {
  const [now, setNow] = useState(route());
  useEffect(() => {
    const change = () => {
      setNow(route());
      scrollTo(0, 0);
    };
    addEventListener("hashchange", change);
    return () => removeEventListener("hashchange", change);
  }, []);
  return now;
}

function Connection() {
  const [reachable, setReachable] = useState(true);
  useEffect(() => watchConnection(setReachable), []);
  useEffect(() => {
    if (reachable) return undefined;
    const timer = setInterval(() => get("/info", { also: [401, 403, 503] }).catch(() => {}), 1500);
    return () => clearInterval(timer);
  }, [reachable]);
  return html`<p class=${`connection ${reachable ? "" : "lost"}`} role="status">
    ${reachable ? "" : "The server does not answer. The console continues as soon as it does."}</p>`;
}

function Theme() {
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const [isDark, setDark] = useState(dark());
  const turn = () => {
    const theme = isDark ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    setDark(!isDark);
    try {
      localStorage.setItem("ksql.theme", theme);
    } catch {
      // it holds for this page
    }
  };
  return html`<button class="plain" onClick=${turn} aria-label=${isDark ? "Light colours" : "Dark colours"} title=${isDark ? "Light colours" : "Dark colours"}>${isDark ? "☀" : "☾"}</button>`;
}

function Frame() {
  const [page, ...parts] = useRoute();
  const Page = PAGES[page];
  const section = BELONGS[page] ?? page;
  useEffect(() => {
    document.title = `${parts[0] ?? NAVIGATION.find(([key]) => key === section)[1]} – ksql console`;
  });
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.querySelector("main").focus(); }}>Skip to the page</a>
    <header class="top">
      <a class="mark" href="#/statements" aria-label="ksql console"><img src="/console/icon.svg" width="24" height="24" alt="" /></a>
      <nav aria-label="Pages">${NAVIGATION.map(([key, label]) => html`<a href=${`#/${key}`} aria-current=${key === section ? "page" : undefined}>${label}</a>`)}</nav>
      <${Theme} />
    </header>
    <${Connection} />
    <main tabindex="-1"><${Page} key=${[page, ...parts].join("/")} parts=${parts} /></main>`;
}

render(html`<${Frame} />`, document.getElementById("app"));

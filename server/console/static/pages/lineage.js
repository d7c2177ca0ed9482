// The graph of topics, queries and tables, with live rates, lags and states.

import { graphlib, layout } from "../vendor/dagre.js";
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { run } from "../api.js";
import { short } from "../charts.js";
import { LeaderNote } from "../leader.js";
import { live } from "../metrics.js";
import { count, ErrorBox, to, useLoaded, useUpdates } from "../ui.js";
import { stateOf } from "./queries.js";

const RELOAD_MS = 15_000;
const NODE = { width: 190, height: 46 };
const LONG_LAG_S = 60;
const MOST_SIGNS = 26;
const KINDS = { RUNNING: "good", PAUSED: "warn", STALLED: "warn", REBUILDING: "", ERROR: "bad", UNRESPONSIVE: "bad" };

/** Load what the graph is of: sources with their topics, queries with what they read and write. */
async function load(signal) {
  const [streams, tables, queries] = await run("SHOW STREAMS; SHOW TABLES; SHOW QUERIES EXTENDED;", {}, signal);
  return {
    sources: [...streams.streams, ...tables.tables],
    queries: queries.queryDescriptions.filter(({ queryType }) => queryType !== "PUSH"),
  };
}

function edgesOf({ sources, queries }) {
  const written = new Set(queries.flatMap(({ sinks }) => sinks));
  const topics = sources.filter(({ name, topic }) => !written.has(name) && topic).map(({ name, topic }) => [`topic ${topic}`, `source ${name}`]);
  const reads = queries.flatMap(({ id, sources: names }) => names.map((name) => [`source ${name}`, `query ${id}`]));
  const writes = queries.flatMap(({ id, sinks }) => sinks.map((name) => [`query ${id}`, `source ${name}`]));
  return [...topics, ...reads, ...writes];
}

/** Return nodes and edges with their places, and the size of the whole. */
function laidOut(catalog) {
  const graph = new graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 44, marginx: 12, marginy: 12, ranker: "longest-path" });
  graph.setDefaultEdgeLabel(() => ({}));
  const put = (key, node) => graph.setNode(key, { ...NODE, ...node });
  for (const source of catalog.sources) {
    put(`source ${source.name}`, { kind: source.type.toLowerCase(), name: source.name, href: to("source", source.name) });
    put(`topic ${source.topic}`, { kind: "topic", name: source.topic, href: to("topic", source.topic) });
  }
  for (const query of catalog.queries) put(`query ${query.id}`, { kind: "query", name: query.id, href: to("query", query.id), query });
  for (const [from, end] of edgesOf(catalog)) if (graph.hasNode(from) && graph.hasNode(end)) graph.setEdge(from, end);
  for (const key of graph.nodes()) {
    if (key.startsWith("topic ") && !graph.outEdges(key).length) graph.removeNode(key); // a query writes it: its source stands for it
  }
  layout(graph);
  return {
    nodes: graph.nodes().map((key) => ({ key, ...graph.node(key) })),
    edges: graph.edges().map((edge) => graph.edge(edge).points),
    width: Math.max(graph.graph().width || 0, 100),
    height: Math.max(graph.graph().height || 0, 100),
  };
}

const cut = (text) => (text.length > MOST_SIGNS ? `${text.slice(0, MOST_SIGNS - 1)}…` : text);

function about(node) {
  if (node.kind !== "query") return { kind: node.kind, text: node.kind };
  const metrics = live.queries.get(node.query.id);
  const state = stateOf({ state: node.query.state ?? "RUNNING", ...(metrics && { state: metrics.state }) }, metrics);
  const rate = metrics?.rate === null || metrics?.rate === undefined ? "" : `${short(metrics.rate)}/s`;
  const lag = metrics?.lagSeconds === null || metrics?.lagSeconds === undefined ? "" : `lag ${short(metrics.lagSeconds)} s`;
  const kind = state === "RUNNING" && metrics?.lagSeconds >= LONG_LAG_S ? "warn" : KINDS[state];
  return { kind: `query ${kind ?? ""}`, text: [state, rate, lag].filter(Boolean).join(" · ") };
}

function Node({ node }) {
  const { kind, text } = about(node);
  const [x, y] = [node.x - NODE.width / 2, node.y - NODE.height / 2];
  return html`<a href=${node.href} class=${kind} aria-label=${`${node.kind} ${node.name}: ${text}`} transform=${`translate(${x} ${y})`}>
    <title>${node.name}: ${text}</title>
    <rect width=${NODE.width} height=${NODE.height} rx=${node.kind === "query" ? 10 : 3} />
    <text x="10" y="19">${cut(node.name)}</text><text x="10" y="36" class="small">${text}</text></a>`;
}

const path = (points) => points.map(({ x, y }, at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

function Graph({ graph, scale }) {
  useUpdates(live);
  return html`<svg width=${graph.width * scale} height=${graph.height * scale} viewBox=${`0 0 ${graph.width} ${graph.height}`} role="group" aria-label="Lineage">
    <defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" /></marker></defs>
    ${graph.edges.map((points) => html`<path d=${path(points)} marker-end="url(#arrow)" />`)}
    ${graph.nodes.map((node) => html`<${Node} key=${node.key} node=${node} />`)}</svg>`;
}

function shapeOf({ sources, queries }) {
  return JSON.stringify([sources.map(({ name, topic }) => [name, topic]), queries.map(({ id, sources: from, sinks }) => [id, from, sinks])]);
}

/** The page. */
export function LineagePage() {
  const { value, error } = useLoaded(load, "", RELOAD_MS);
  const [scale, setScale] = useState(1);
  const place = useRef(null);
  const shape = value && shapeOf(value);
  const graph = useMemo(() => value && laidOut(value), [shape]);
  const fit = () => setScale(Math.min(1, Math.max(place.current.clientWidth / graph.width, 0.1)));
  useEffect(() => { if (graph) setScale(Math.min(1, Math.max(place.current.clientWidth / graph.width, 0.6))); }, [graph]);
  return html`<h1>Lineage</h1>
    <p class="buttons"><button onClick=${() => setScale(scale * 1.25)} aria-label="Larger">+</button>
      <button onClick=${() => setScale(scale / 1.25)} aria-label="Smaller">−</button><button onClick=${fit} disabled=${!graph}>Fit the width</button>
      <span class="dim" role="status">${graph ? `${count(value.sources.length)} sources, ${count(value.queries.length)} queries` : "…"}</span></p>
    <${ErrorBox} error=${error} /><${LeaderNote} />
    <div class="graph" ref=${place} tabindex="0">${graph && html`<${Graph} graph=${graph} scale=${scale} />`}</div>`;
}

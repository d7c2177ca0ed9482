// The tabs of the editor and what runs in them; both outlive a change of the page.

import { ApiError, run } from "./api.js";
import { loadCatalogue } from "./catalogue.js";
import { isQuery, newSession, sessionAfter } from "./session.js";
import { offsetOf, split } from "./split.js";
import { RowStream } from "./stream.js";

const TABS = "ksql.tabs";
const HISTORY = "ksql.history";
const MOST_HISTORY = 200;
const MOST_STREAMS = 4; // a browser opens six connections to a server; the rest is for other requests
const CHANGES = /^(CREATE|DROP|ALTER|TERMINATE)\b/i;

const open = new Set();

function stored(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise; // somebody else has written there
  }
}

/** Keep something in this browser; false if there is no room, or it keeps nothing. */
function keep(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** Return what was run, the newest first. */
export function remembered() {
  return stored(HISTORY, []);
}

/** Forget it. */
export function clearHistory() {
  keep(HISTORY, []);
}

function remember(text, failed) {
  const others = remembered().filter((entry) => entry.text !== text);
  let entries = [{ text: text.slice(0, 20_000), at: Date.now(), failed }, ...others].slice(0, MOST_HISTORY);
  while (!keep(HISTORY, entries) && entries.length) entries = entries.slice(0, Math.floor(entries.length / 2));
}

/** More queries at a time than a browser can read. */
class TooManyStreams extends ApiError {
  constructor() {
    super(`${MOST_STREAMS} queries of this console are running, and a browser reads no more at a time.\nStop one of them first.`);
  }
}

/** Runs the statements of one tab, one after the other; `results` has an element for each that was begun. */
export class Runner {
  constructor() {
    this.results = [];
    this.isRunning = false;
    this.turn = 0;
    this.listeners = new Set();
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell() {
    for (const listener of this.listeners) listener();
  }

  /** The errors with a place in the tab's text. */
  get marks() {
    return this.results.flatMap(({ place }) => (place ? [{ from: place.at, to: place.to, message: place.message }] : []));
  }

  stop() {
    this.abort?.abort();
    for (const { stream } of this.results) stream?.stop();
  }

  /** Run the text, which begins at `from` in the tab's; an error ends it. */
  async run(tab, text, from) {
    if (this.isRunning) return;
    Object.assign(this, { isRunning: true, results: [], turn: this.turn + 1, abort: new AbortController() });
    let failed = false;
    for (const statement of split(text)) {
      const result = { statement, pending: true };
      this.results = [...this.results, result];
      this.tell();
      await this.carryOut(tab, statement, result);
      result.pending = false;
      const error = result.error ?? result.stream?.error;
      if (error) result.place = placeOf(error, statement, tab.text, from);
      failed = Boolean(error);
      if (failed || this.abort.signal.aborted) break;
    }
    this.isRunning = false;
    if (text.trim()) remember(text.trim(), failed);
    this.tell();
    tabs.tell();
  }

  async carryOut(tab, statement, result) {
    try {
      const after = sessionAfter(statement.text, tab.session);
      if (after) {
        tabs.setSession(tab, after.session);
        result.said = after.said;
      } else if (isQuery(statement.text)) {
        await this.stream(tab, statement, result);
      } else {
        result.entities = await run(statement.text, sessionOf(tab), this.abort.signal);
        if (!result.entities.length) result.said = "Done.";
        if (CHANGES.test(statement.text)) await loadCatalogue();
      }
    } catch (problem) {
      if (problem.name === "AbortError") result.said = "Stopped; the server may have carried it out.";
      else result.error = problem;
    }
  }

  async stream(tab, statement, result) {
    if (open.size >= MOST_STREAMS) throw new TooManyStreams();
    result.stream = new RowStream(statement.text, sessionOf(tab));
    open.add(result.stream);
    this.tell();
    try {
      await result.stream.read();
    } finally {
      open.delete(result.stream);
    }
  }
}

function sessionOf(tab) {
  return { variables: tab.session.variables, properties: { "auto.offset.reset": tab.offset, ...tab.session.properties } };
}

function placeOf(error, statement, text, from) {
  if (!error.position) return null;
  const { line, column } = error.position;
  const at = from + statement.from + offsetOf(statement.text, line, column);
  const before = text.slice(0, at).split("\n");
  const word = /^[\w$]+/.exec(text.slice(at));
  return { at, to: at + (word ? word[0].length : 1), line: before.length, column: before.at(-1).length + 1, message: error.message };
}

function newTab(number, text = "") {
  return { id: `${Date.now()}-${number}`, title: `Tab ${number}`, text, offset: "latest", session: newSession(), runner: new Runner() };
}

/** The tabs of the editor; their texts and settings are kept in this browser. */
class TabList {
  constructor() {
    this.listeners = new Set();
    this.list = stored(TABS, []).map((tab) => ({ session: newSession(), offset: "latest", ...tab, runner: new Runner() }));
    if (!this.list.length) this.list = [newTab(1)];
    this.currentId = this.list[0].id;
    this.isKept = true;
  }

  get current() {
    return this.list.find((tab) => tab.id === this.currentId) ?? this.list[0];
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell() {
    const kept = this.list.map(({ id, title, text, offset, session }) => ({ id, title, text, offset, session }));
    if (!(this.isKept = keep(TABS, kept))) {
      clearHistory(); // which takes the most room
      this.isKept = keep(TABS, kept);
    }
    for (const listener of this.listeners) listener();
  }

  add(text = "") {
    const numbers = this.list.map((tab) => Number(/\d+$/.exec(tab.title)?.[0] ?? 0));
    const tab = newTab(Math.max(0, ...numbers) + 1, text);
    this.list = [...this.list, tab];
    this.choose(tab.id);
  }

  choose(id) {
    this.currentId = id;
    this.tell();
  }

  close(id) {
    this.list.find((tab) => tab.id === id)?.runner.stop();
    this.list = this.list.filter((tab) => tab.id !== id);
    this.tell();
  }

  edit(tab, text) {
    tab.text = text;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), 300);
  }

  setOffset(tab, offset) {
    tab.offset = offset;
    this.tell();
  }

  setSession(tab, session) {
    tab.session = session;
    this.tell();
  }
}

export const tabs = new TabList();
addEventListener("pagehide", () => tabs.tell());

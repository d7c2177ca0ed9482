// The rows of one SELECT or PRINT, as they come. The latest are kept as texts; a row is parsed when it is shown.

import { ApiError, errorOf, post } from "./api.js";
import { parse } from "./exact.js";

export const MOST_ROWS = 10_000;
const ROWS_KIND = "application/vnd.ksql.v1+json";
const NOTICE_MS = 150;

/** The latest texts of an endless list; `dropped` counts those that are gone. */
class Latest {
  constructor(most) {
    this.most = most;
    this.texts = [];
    this.dropped = 0;
  }

  push(text) {
    this.texts.push(text);
    if (this.texts.length >= 2 * this.most) this.trim();
  }

  trim() {
    const surplus = this.texts.length - this.most;
    if (surplus <= 0) return;
    this.texts = this.texts.slice(surplus);
    this.dropped += surplus;
  }
}

/** Split the text of a header, "`A` STRING KEY, `B` INTEGER", into columns with name and type. */
export function columnsOf(schema) {
  const columns = [];
  const pattern = /`((?:[^`]|``)*)`\s+/y;
  let at = 0;
  while (at < schema.length) {
    pattern.lastIndex = at;
    const name = pattern.exec(schema);
    if (name === null) break;
    const end = endOfType(schema, pattern.lastIndex);
    columns.push({ name: name[1].replaceAll("``", "`"), type: schema.slice(pattern.lastIndex, end) });
    at = end + 2;
  }
  return columns;
}

function endOfType(schema, from) {
  let depth = 0;
  let quoted = false;
  for (let at = from; at < schema.length; at += 1) {
    const sign = schema[at];
    if (sign === "`") quoted = !quoted;
    else if (quoted) continue;
    else if (sign === "<" || sign === "(") depth += 1;
    else if (sign === ">" || sign === ")") depth -= 1;
    else if (sign === "," && depth === 0) return at;
  }
  return schema.length;
}

/** A query under way: `columns` (null for PRINT), `rows`, `state` (running, ended, stopped or failed). */
export class RowStream {
  constructor(sql, session) {
    this.sql = sql;
    this.session = session;
    this.rows = new Latest(MOST_ROWS);
    this.columns = null;
    this.queryId = null;
    this.state = "running";
    this.notes = [];
    this.error = null;
    this.began = Date.now();
    this.ended = null;
    this.rate = 0;
    this.listeners = new Set();
    this.abort = new AbortController();
    this.rest = "";
    this.seen = { at: performance.now(), total: 0 };
  }

  /** How many rows have come. */
  get total() {
    return this.rows.dropped + this.rows.texts.length;
  }

  /** Return the values of a kept row: an array, with `tombstone` if the row is gone. */
  row(index) {
    const text = this.rows.texts[index];
    if (this.columns === null) return [text];
    const { columns, tombstone } = parse(text).row;
    return tombstone ? Object.assign(columns, { tombstone }) : columns;
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  stop() {
    if (this.state !== "running") return;
    this.state = "stopped";
    this.abort.abort();
  }

  /** Read to the end, which is also that of a stop; never rejects: see `state` and `error`. */
  async read() {
    const timer = setInterval(() => this.tell(), NOTICE_MS);
    try {
      await this.receive();
      if (this.state === "running") this.state = this.error ? "failed" : "ended";
    } catch (problem) {
      if (this.state !== "stopped") {
        this.state = "failed";
        this.error = problem instanceof ApiError ? problem : new ApiError("The connection was lost.");
      }
    } finally {
      clearInterval(timer);
      this.ended = Date.now();
      this.tell();
    }
  }

  tell() {
    const now = performance.now();
    if (now - this.seen.at >= 1000) {
      this.rate = Math.round(((this.total - this.seen.total) * 1000) / (now - this.seen.at));
      this.seen = { at: now, total: this.total };
    }
    this.rows.trim();
    for (const listener of this.listeners) listener();
  }

  async receive() {
    const body = { sql: this.sql, properties: this.session.properties, sessionVariables: this.session.variables };
    const response = await post("/query-stream", body, { signal: this.abort.signal, accept: ROWS_KIND });
    if (!response.ok) throw await errorOf(response);
    const isText = (response.headers.get("content-type") ?? "").startsWith("text/plain");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      this.take(piece.value, isText);
    }
    if (this.rest) this.line(this.rest, isText);
  }

  take(piece, isText) {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop();
    for (const line of lines) this.line(line, isText);
    if (!isText && this.rest.endsWith("}") && isWhole(this.rest)) {
      this.line(this.rest, isText);
      this.rest = "";
    }
  }

  line(line, isText) {
    if (isText) {
      if (line.startsWith('{"@type":')) this.element(`{"errorMessage":${line}}`);
      else if (line) this.rows.push(line);
      return;
    }
    const text = unframed(line);
    if (text.startsWith('{"row":')) this.rows.push(text);
    else if (text) this.element(text);
  }

  element(text) {
    const { header, errorMessage, finalMessage } = JSON.parse(text);
    if (header) {
      this.queryId = header.queryId;
      this.columns = columnsOf(header.schema);
      this.notes.push(...(header.notes ?? []));
    } else if (errorMessage) {
      this.error = new ApiError(errorMessage.message, 200, errorMessage.error_code, errorMessage);
    } else if (finalMessage) {
      this.notes.push(finalMessage);
    }
    this.tell();
  }
}

/** Return an element of the answer without the signs between elements; a value may be full of them. */
function unframed(line) {
  let end = line.length;
  while (end > 0 && (line[end - 1] === "," || line[end - 1] === "]")) end -= 1;
  return line.slice(line.startsWith("[") ? 1 : 0, Math.max(end, 0));
}

function isWhole(line) {
  try {
    JSON.parse(line.replace(/^\[/, ""));
    return true;
  } catch {
    return false;
  }
}

// The REST API: every request of the console is made here, to the server that the page came from.

import { parse } from "./exact.js";

const JSON_KIND = "application/json";
const POSITION = /^line (\d+):(\d+): /;

/** A request that was refused, or that no server answered (`status` 0). */
export class ApiError extends Error {
  constructor(message, status = 0, code = 0, body = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.entities = body.entities ?? [];
  }

  /** Line and column in the statement, both from 1; null if the error is at no place. */
  get position() {
    const match = POSITION.exec(this.message);
    return match && { line: Number(match[1]), column: Number(match[2]) };
  }
}

const watchers = new Set();
let reachable = true;

/** Call `watcher` with whether the server answers, each time that this changes. */
export function watchConnection(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

function noteReachable(now) {
  if (now === reachable) return;
  reachable = now;
  for (const watcher of watchers) watcher(now);
}

async function ask(path, options) {
  try {
    const response = await fetch(path, { ...options, headers: { accept: JSON_KIND, ...options.headers } });
    noteReachable(true);
    return response;
  } catch (problem) {
    if (problem.name === "AbortError") throw problem;
    noteReachable(false);
    throw new ApiError("The server does not answer.");
  }
}

/** Return the error that a response is. */
export async function errorOf(response) {
  const text = await response.text();
  try {
    const body = JSON.parse(text);
    return new ApiError(body.message, response.status, body.error_code, body);
  } catch {
    const said = response.status === 401 ? "A user and a password are needed." : text || response.statusText;
    return new ApiError(said, response.status);
  }
}

/** GET a path; the JSON value. Statuses of `also` are answers, not errors. */
export async function get(path, { signal, also = [] } = {}) {
  const response = await ask(path, { signal });
  if (!response.ok && !also.includes(response.status)) throw await errorOf(response);
  return parse(await response.text());
}

/** The error code of a replacement whose query runs another plan than the expected one. */
export const REPLACED_MEANWHILE = 40901;

/** GET a path whose answer is plain text. */
export async function getText(path, { signal } = {}) {
  const response = await ask(path, { signal, headers: { accept: "text/plain" } });
  if (!response.ok) throw await errorOf(response);
  return response.text();
}

/** POST a JSON body; the response, whatever its status. */
export function post(path, body, { signal, accept = JSON_KIND } = {}) {
  const headers = { accept, "content-type": JSON_KIND };
  return ask(path, { method: "POST", body: JSON.stringify(body), signal, headers });
}

/** Run statements; the entities of their answers. `session` has `properties` and `variables`. */
export async function run(ksql, session = {}, signal = undefined) {
  const body = { ksql, streamsProperties: session.properties ?? {}, sessionVariables: session.variables ?? {} };
  const response = await post("/ksql", body, { signal });
  if (!response.ok) throw await errorOf(response);
  return parse(await response.text());
}

/** Run one statement; its entity. */
export async function one(ksql, session = {}, signal = undefined) {
  return (await run(ksql, session, signal))[0];
}

/** Return a name as a quoted identifier. */
export function quote(name) {
  return `\`${name.replaceAll("`", "``")}\``;
}

/** Return a text as a literal. */
export function literal(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

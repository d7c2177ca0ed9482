// The text of a replacement, made from that of a running query.

import { literal, quote } from "./api.js";
import { words } from "./split.js";

const isWord = (token, text) => token?.text.toUpperCase() === text;

function replaced(text, token, by) {
  return text.slice(0, token.from) + by + text.slice(token.from + token.text.length);
}

function withoutIfNotExists(statement) {
  const tokens = words(statement);
  const at = tokens.findIndex((token, index) => isWord(token, "IF") && isWord(tokens[index + 1], "NOT") && isWord(tokens[index + 2], "EXISTS"));
  if (at < 0 || at > 4) return statement;
  return statement.slice(0, tokens[at].from) + statement.slice(tokens[at + 3].from);
}

/** Return the statement that would replace the query by itself. */
export function replacementOf({ id, statement: given }) {
  const statement = withoutIfNotExists(given);
  const tokens = words(statement);
  if (isWord(tokens[0], "INSERT")) return `CREATE OR REPLACE QUERY ${quote(id)} AS ${statement.trim()}`;
  if (isWord(tokens[0], "CREATE") && !isWord(tokens[1], "OR")) return replaced(statement, tokens[0], "CREATE OR REPLACE").trim();
  return statement.trim();
}

function placeOfWith(tokens) {
  const as = tokens.findIndex((token) => isWord(token, "AS"));
  const at = tokens.findIndex((token, index) => isWord(token, "WITH") && index < as && isWord(tokens[index + 1], "("));
  return { as, at };
}

/** Return the statement with another value of an option in WITH; "" takes it out. */
export function withOption(statement, name, value) {
  const tokens = words(statement);
  const { as, at } = placeOfWith(tokens);
  const stated = tokens.findIndex((token, index) => at >= 0 && index > at && index < as && isWord(token, name));
  if (stated >= 0 && value) return replaced(statement, tokens[stated + 2], literal(value));
  if (stated >= 0) return withoutOption(statement, tokens, stated, at);
  if (!value || as < 0) return statement;
  const option = `${name} = ${literal(value)}`;
  if (at >= 0) return replaced(statement, tokens[at + 1], isWord(tokens[at + 2], ")") ? `(${option}` : `(${option}, `);
  return replaced(statement, tokens[as], `WITH (${option}) AS`);
}

function withoutOption(statement, tokens, stated, at) {
  const next = tokens[stated + 3];
  const isFirst = stated === at + 2;
  const isAlone = isFirst && isWord(next, ")");
  const from = isAlone ? tokens[at].from : isFirst ? tokens[stated].from : tokens[stated - 1].from;
  const to = isAlone || (isFirst && isWord(next, ",")) ? next.from + 1 : tokens[stated + 2].from + tokens[stated + 2].text.length;
  return `${statement.slice(0, from).trimEnd()} ${statement.slice(to).trimStart()}`;
}

/** Return the statement with another REPLACE_MODE; "" takes it out, and START_MODE with it, which is of rebuilds only. */
export function withMode(statement, mode) {
  return withOption(mode ? statement : withOption(statement, "START_MODE", ""), "REPLACE_MODE", mode);
}

/** Return the value of an option that a statement states; "" without one. */
export function optionOf(statement, name) {
  const tokens = words(statement);
  const { as, at } = placeOfWith(tokens);
  const stated = tokens.findIndex((token, index) => at >= 0 && index > at && index < as && isWord(token, name));
  const value = stated < 0 ? "" : (tokens[stated + 2]?.text ?? "");
  return value.startsWith("'") ? value.slice(1, -1).replaceAll("''", "'") : "";
}

/** Return the REPLACE_MODE that a statement states, in small letters; "" without one. */
export function modeOf(statement) {
  return optionOf(statement, "REPLACE_MODE").toLowerCase();
}

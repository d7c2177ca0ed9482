// Rows as files: CSV (RFC 4180) and JSON. Numbers keep their digits.

import { cellText, stringify } from "./exact.js";

const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const csvLine = (values) => values.map((value) => quoted(cellText(value) ?? "")).join(",");

function names(stream) {
  return stream.columns === null ? ["line"] : stream.columns.map((column) => column.name);
}

function* kept(stream) {
  for (let index = 0; index < stream.rows.texts.length; index += 1) yield stream.row(index);
}

/** Return the rows that are kept as CSV, with a line of names; NULL is an empty field. */
export function asCsv(stream) {
  return [csvLine(names(stream)), ...[...kept(stream)].map(csvLine), ""].join("\r\n");
}

/** Return the rows that are kept as an array of objects. */
export function asJson(stream) {
  const columns = names(stream);
  const object = (row) => `{${columns.map((name, at) => `${JSON.stringify(name)}:${stringify(row[at])}`).join(",")}}`;
  return `[\n${[...kept(stream)].map(object).join(",\n")}\n]\n`;
}

/** Hand a text to the user as a file. */
export function download(name, kind, text) {
  const url = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = Object.assign(document.createElement("a"), { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

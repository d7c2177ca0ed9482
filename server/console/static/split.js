// Splits a text into statements: quotes and comments are known, nothing else is.

const TOKEN =
  /--[^\n]*|\/\*[^]*?(?:\*\/|$)|'(?:[^']|'')*(?:'|$)|`(?:[^`]|``)*(?:`|$)|"(?:[^"]|"")*(?:"|$)|;/g;

const isComment = (token) => token.startsWith("--") || token.startsWith("/*");

/** Return a text with blanks in place of its comments, so that all places stay. */
export function uncommented(text) {
  return text.replace(TOKEN, (token) => (isComment(token) ? token.replace(/[^\n]/g, " ") : token));
}

function statement(text, from, to) {
  const piece = text.slice(from, to);
  const lead = piece.length - piece.trimStart().length;
  const body = piece.trim();
  return { text: body.endsWith(";") ? body : `${body};`, from: from + lead, to: from + lead + body.length };
}

/** Return the statements of a text, each with its semicolon and its place (`from`, `to`) in the text. */
export function split(text) {
  const clean = uncommented(text);
  const statements = [];
  let from = 0;
  for (const match of clean.matchAll(TOKEN)) {
    if (match[0] !== ";") continue;
    statements.push(statement(clean, from, match.index + 1));
    from = match.index + 1;
  }
  if (clean.slice(from).trim()) statements.push(statement(clean, from, clean.length));
  return statements.filter((each) => each.text !== ";");
}

/** Return the offset in a text of a line and column, both from 1. */
export function offsetOf(text, line, column) {
  const lines = text.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return Math.min(before + column - 1, text.length);
}

/** Return the words of a statement as tokens with their places; comments are left out. */
export function words(text) {
  const pattern = /'(?:[^']|'')*'|`(?:[^`]|``)*`|"(?:[^"]|"")*"|[A-Za-z_][\w$]*|[^\s\w]|\d[\w.]*/g;
  return [...uncommented(text).matchAll(pattern)].map((match) => ({ text: match[0], from: match.index }));
}

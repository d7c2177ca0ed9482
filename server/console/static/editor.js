// The editor of statements: CodeMirror in a shadow root, so that its styles need no exception from the page's policy.

import { html, useEffect, useRef } from "./vendor/preact.js";
import {
  acceptCompletion, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, completionKeymap, defaultKeymap,
  drawSelection, EditorState, EditorView, highlightActiveLine, HighlightStyle, highlightSelectionMatches, history,
  historyKeymap, keymap, lineNumbers, Prec, search, searchKeymap, setDiagnostics, SQLDialect, sql, syntaxHighlighting, tags,
} from "./vendor/codemirror.js";
import { catalogue, columnsOf } from "./catalogue.js";
import { quote } from "./api.js";
import { CLAUSES, KEYWORDS, RESERVED, TYPES } from "./sqlwords.js";

const dialect = SQLDialect.define({
  keywords: KEYWORDS.join(" ").toLowerCase(),
  types: TYPES.join(" ").toLowerCase(),
  identifierQuotes: '`"',
  doubleDollarQuotedStrings: false,
  backslashEscapes: false,
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--sql-keyword)", fontWeight: "600" },
  { tag: tags.typeName, color: "var(--sql-type)" },
  { tag: tags.string, color: "var(--sql-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--sql-number)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--dim)", fontStyle: "italic" },
  { tag: tags.special(tags.string), color: "var(--sql-name)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--field)", fontSize: "13px", height: "100%" },
  "&.cm-focused": { outline: "none" }, // its place in the page shows it
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--text)", padding: "8px 0" },
  ".cm-scroller": { lineHeight: "1.5", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--dim)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--line-active)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    background: "var(--selection)",
  },
  ".cm-tooltip, .cm-panels": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--border)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap", fontFamily: "var(--mono)" },
});

const plainName = /^[A-Z_][A-Z0-9_$]*$/;
const reserved = new Set(RESERVED);

/** Return a name as one writes it: quoted where it must be. */
export function written(name) {
  return plainName.test(name) && !reserved.has(name) ? name.toLowerCase() : quote(name);
}

function sourcesIn(text) {
  const there = new Map([...catalogue.streams, ...catalogue.tables].map(({ name }) => [name, name]));
  const named = new Set();
  for (const match of text.matchAll(/`((?:[^`]|``)+)`|[A-Za-z_][\w$]*/g)) {
    const name = match[1] === undefined ? match[0].toUpperCase() : match[1].replaceAll("``", "`");
    if (there.has(name)) named.add(name);
  }
  return [...named];
}

function statementAround(text, at) {
  const from = text.lastIndexOf(";", at - 1) + 1;
  const to = text.indexOf(";", at);
  return text.slice(from, to < 0 ? text.length : to);
}

/** Complete from the grammar's words, the catalog's names, and the columns of the sources in the statement. */
async function complete(context) {
  const word = context.matchBefore(/[\w$`]*/);
  const before = context.state.sliceDoc(Math.max(word.from - 200, 0), word.from);
  if (word.from === word.to && !context.explicit && !before.endsWith(".")) return null;
  const text = statementAround(context.state.doc.toString(), context.pos);
  const lists = await Promise.all(sourcesIn(text).map(async (name) => [name, await columnsOf(name)]));
  const columns = lists.flatMap(([source, list]) =>
    list.map(({ name, type }) => ({ label: written(name), type: "property", detail: `${type} of ${source}`, boost: 3 })));
  if (before.endsWith(".")) return { from: word.from, options: columns };
  const sources = [...catalogue.streams, ...catalogue.tables].map(({ name, type }) =>
    ({ label: written(name), type: "class", detail: (type ?? "").toLowerCase(), boost: /\b(FROM|JOIN|INTO|DESCRIBE|OF|FOR)\s+$/i.test(before) ? 9 : 2 }));
  const functions = catalogue.functions.map(({ name, type }) =>
    ({ label: `${name}(`, displayLabel: name, type: "function", detail: type.toLowerCase() }));
  const types = [...TYPES, ...Object.keys(catalogue.types)].map((label) => ({ label, type: "type" }));
  const keywords = KEYWORDS.map((label) => ({ label, type: "keyword", boost: CLAUSES.includes(label) ? 1 : 0 }));
  return { from: word.from, options: [...columns, ...sources, ...functions, ...types, ...keywords], validFor: /^[\w$`]*$/ };
}

/** Replace a selection by what is typed: the browser would keep its colours as a style, which the page's policy blocks. */
const typedOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { from, to, empty } = view.state.selection.main;
    if (event.inputType !== "insertText" || !event.data || empty || view.composing) return false;
    event.preventDefault();
    const transaction = () => view.state.update(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    const isHandled = view.state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, event.data, transaction));
    if (!isHandled) view.dispatch(transaction());
    return true;
  },
});

function extensions(onChange, keys) {
  return [
    typedOver,
    lineNumbers(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(),
    highlightSelectionMatches(), search({ top: true }), sql({ dialect, upperCaseKeywords: true }),
    autocompletion({ override: [complete], activateOnTyping: true, interactionDelay: 0 }), syntaxHighlighting(colours), look,
    Prec.highest(keymap.of(keys)),
    keymap.of([
      { key: "Tab", run: acceptCompletion }, // else Tab leaves the editor, as everywhere in the page
      ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...searchKeymap,
    ]),
    EditorView.lineWrapping,
    EditorView.contentAttributes.of({ "aria-label": "Statements" }),
    EditorView.updateListener.of((update) => update.docChanged && onChange(update.state.doc.toString())),
  ];
}

/** Mark errors `{from, to, message}` in the text. */
export function mark(view, errors) {
  const end = view.state.doc.length;
  const diagnostics = errors.map(({ from, to, message }) =>
    ({ from: Math.min(from, end), to: Math.min(Math.max(to, from + 1), end), severity: "error", message }));
  view.dispatch(setDiagnostics(view.state, diagnostics));
}

/** An editor of `text`; `keys` are bindings, `handle` gets the view. A new `docId` puts another text in. */
export function Editor({ docId, text, onChange, keys = [], handle }) {
  const place = useRef(null);
  const latest = useRef({});
  latest.current = { onChange, keys };
  useEffect(() => {
    const root = place.current.shadowRoot ?? place.current.attachShadow({ mode: "open" });
    const bindings = keys.map((binding, at) => ({ ...binding, run: (view) => latest.current.keys[at].run(view) }));
    const state = EditorState.create({ doc: text, extensions: extensions((now) => latest.current.onChange(now), bindings) });
    const view = new EditorView({ state, parent: root, root });
    if (handle) handle.current = view;
    return () => view.destroy();
  }, [docId]);
  return html`<div class="editor" ref=${place}></div>`;
}

"""The console as a user has it: pages, fields and buttons by their names."""

from __future__ import annotations

from tests.waits import PATIENCE_S

_SHIFTS = """
window.shifted = 0;
window.shifts = [];
let [begun, last, sum] = [-1e9, -1e9, 0];
new PerformanceObserver((list) => {
  for (const {hadRecentInput, startTime, value, sources} of list.getEntries()) {
    if (hadRecentInput) continue;
    const moved = sources.map(({node}) => `${node?.nodeName} ${node?.textContent.slice(0, 40)}`);
    window.shifts.push([value, location.hash, moved]);
    if (startTime - last > 1000 || startTime - begun > 5000) [begun, sum] = [startTime, 0];
    [last, sum] = [startTime, sum + value];
    window.shifted = Math.max(window.shifted, sum);
  }
}).observe({type: "layout-shift", buffered: true});
"""
_REFUSED = "Failed to load resource"
"""The browser's own line for an answer that is an error; the page shows that one."""


class Console:
    """One page of the console; ``errors`` has what went wrong in it."""

    def __init__(self, context, url):
        self.url = f"{url.rstrip('/')}/console"
        self.context = context
        self.errors: list[str] = []
        self.page = context.new_page()
        self.page.set_default_timeout(PATIENCE_S * 1000)
        self.page.add_init_script(_SHIFTS)
        self.page.on("console", self._log)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _log(self, message):
        if message.type == "error" and not message.text.startswith(_REFUSED):
            self.errors.append(message.text)

    def close(self):
        self.context.close()

    def open(self, path=""):
        """Go to a page by its address: ``queries``."""
        self.page.goto(f"{self.url}#/{path}")
        self.page.get_by_role("navigation").wait_for()

    @property
    def shifted(self):
        """The cumulative layout shift: how far the page moved by itself, in its worst 5 s."""
        return self.page.evaluate("window.shifted")

    def sees(self, text, *, within="main, dialog"):
        """Wait until a text is to be seen."""
        self.page.locator(within).get_by_text(text).first.wait_for()

    def press(self, name, *, within="main, dialog"):
        self.page.locator(within).get_by_role("button", name=name, exact=True).last.click()

    def write(self, text, *, within="main"):
        """Replace the text of the editor, as by the clipboard."""
        editor = self.page.locator(f"{within} .cm-content")
        editor.click()
        editor.press("Control+a")
        editor.press("Delete")
        self.page.keyboard.insert_text(text)

    def run(self, text, *, start="earliest"):
        """Run statements in the editor's tab."""
        if "#/statements" not in self.page.url:
            self.open("statements")
        self.page.get_by_label("Queries read from").select_option(start)
        self.write(text)
        self.page.locator(".cm-content").press("Control+Enter")

    def status(self, part):
        """Wait until the line above the rows has that part."""
        self.page.locator("[data-test=rows-status]", has_text=part).first.wait_for()

    def cells(self):
        """Return the texts of the cells of rows that are drawn."""
        return self.page.locator(".grid .window .cell").all_inner_texts()

    def export(self, name):
        with self.page.expect_download() as download:
            self.press(name)
        return download.value.path().read_text(encoding="utf-8")

// Sets the colours that were chosen before the page is drawn. It is no module, so that it runs first.
"use strict";
try {
  const chosen = localStorage.getItem("ksql.theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
} catch {
  // a browser that keeps nothing: the colours follow the system
}

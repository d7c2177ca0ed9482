// Charts over time, drawn by uPlot.

import uPlot from "./vendor/uplot.js";
import { html, useEffect, useRef } from "./vendor/preact.js";

const HEIGHT_PX = 190;

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function options(lines, width) {
  const axis = { stroke: colour("--dim"), grid: { stroke: colour("--border"), width: 1 }, ticks: { stroke: colour("--border") } };
  return {
    width,
    height: HEIGHT_PX,
    cursor: { y: false },
    legend: { live: true },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [axis, { ...axis, size: 60, values: (_plot, ticks) => ticks.map(short) }],
    series: [{}, ...lines.map(({ label, colour: name, format }) => ({
      label, stroke: colour(name), width: 1.5, value: (_plot, value) => (value === null ? "–" : (format ?? short)(value)),
    }))],
  };
}

/** Return a number in few signs. */
export function short(value) {
  if (value === null || value === undefined) return "–";
  const units = [[1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, unit] = units.find(([limit]) => Math.abs(value) >= limit) ?? [1, ""];
  return `${Number((value / size).toPrecision(3))}${unit}`;
}

const dataOf = ({ times, lines }) => [times, ...lines.map(({ values }) => values)];

/** A chart: `times` are seconds since 1970, `lines` have `label`, `colour` and `values`. */
export function Chart({ title, times, lines }) {
  const place = useRef(null);
  const plot = useRef(null);
  const latest = useRef(null);
  latest.current = { times, lines };
  useEffect(() => {
    const element = place.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(latest.current.lines, element.clientWidth), dataOf(latest.current), element);
    };
    make();
    const resized = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    resized.observe(element);
    const recoloured = new MutationObserver(make);
    recoloured.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      resized.disconnect();
      recoloured.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, []);
  useEffect(() => plot.current?.setData(dataOf(latest.current)), [times]);
  const last = lines.map(({ label, values }) => `${label} ${short(values.at(-1))}`).join(", ");
  return html`<section class="chart" aria-label=${`${title}: ${last}`}><h3>${title}</h3><div class="plot" ref=${place}></div></section>`;
}

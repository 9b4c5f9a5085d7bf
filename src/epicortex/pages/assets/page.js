"use strict";
// Draws the plots of the page with the plotly library that is packed into it, in the colours of its style
// sheet, light or dark; makes legends, arrow keys and the switch work. Nothing is loaded from anywhere.

const root = document.documentElement;
const live = document.getElementById("live");
const plots = new Map();

async function unpacked(id) {
  const text = document.getElementById(id).textContent.trim();
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

// Every "var(--name)" in a figure becomes the colour it has now.
function coloured(value, style) {
  if (typeof value === "string") {
    return value.replace(/^var\((--[\w-]+)\)$/, (_, name) => style.getPropertyValue(name).trim());
  }
  if (Array.isArray(value)) {
    return typeof value[0] === "number" ? value : value.map((item) => coloured(item, style));
  }
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, style)]));
  }
  return value;
}

function themed(plot) {
  const style = getComputedStyle(root);
  const colour = (name) => style.getPropertyValue(name).trim();
  const figure = coloured({ data: plot.figure.data, layout: plot.figure.layout }, style);
  const narrow = plot.div.clientWidth < 560;
  const axis = { gridcolor: colour("--grid"), zerolinecolor: colour("--line"), linecolor: colour("--line"), automargin: true };
  for (const [place, trace] of figure.data.entries()) {
    trace.visible = plot.hidden.has(place) ? "legendonly" : true;
    if (trace.genome) {
      trace.text = trace.genome.map((number) => plot.figure.genomes[number]);
    }
    if (trace.marker?.colorscale === "generations") {
      trace.marker.colorscale = [0, 0.5, 1].map((at, step) => [at, colour(`--g${step}`)]);
      const bar = { thickness: 12, outlinewidth: 0, tickfont: { color: colour("--soft") } };
      trace.marker.colorbar = narrow
        ? { ...bar, ...trace.marker.colorbar, orientation: "h", y: -0.32, thickness: 8, title: { text: "generation", side: "bottom" } }
        : { ...bar, ...trace.marker.colorbar };
    }
  }
  const layout = {
    ...figure.layout,
    showlegend: false,
    autosize: true,
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 12 : 13, color: colour("--ink") },
    margin: { l: narrow ? 40 : 56, r: 12, t: 10, b: 44 },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("--soft"), activecolor: colour("--ink") },
    hoverlabel: { bgcolor: colour("--card"), bordercolor: colour("--soft"), font: { family: getComputedStyle(document.body).fontFamily, color: colour("--ink"), size: 13 }, align: "left", namelength: -1 },
    // A finger scrolls the page; a mouse draws a box to zoom.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
  };
  for (const name of ["xaxis", "yaxis", "yaxis2"]) {
    if (layout[name]) {
      layout[name] = { ...axis, ...layout[name] };
      layout[name].title = { standoff: 8, ...layout[name].title, font: { size: 12, color: colour("--soft") } };
    }
  }
  return [figure.data, layout];
}

function draw(plot) {
  const options = {
    responsive: true,
    displayModeBar: matchMedia("(hover: hover)").matches ? "hover" : false,
    displaylogo: false,
    modeBarButtons: [["toImage"], ["zoom2d", "pan2d"], ["zoomIn2d", "zoomOut2d", "resetScale2d"]],
    toImageButtonOptions: { filename: `epicortex-${plot.name}`, scale: 2 },
  };
  return Plotly.react(plot.div, ...themed(plot), options);
}

function addLegend(plot) {
  const entries = plot.figure.data
    .map((trace, place) => [trace, place])
    .filter(([trace]) => trace.showlegend !== false && trace.name);
  if (!entries.length) return;
  if (plot.figure.layout.legend?.traceorder === "reversed") entries.reverse();
  const list = document.createElement("ul");
  list.className = "legend";
  list.setAttribute("aria-label", "Legend: each button shows or hides a series");
  for (const [trace, place] of entries) {
    const button = document.createElement("button");
    const swatch = document.createElement("i");
    const isLine = !trace.fillcolor && trace.line;
    swatch.className = isLine ? "line" : "";
    swatch.style.background = trace.fillcolor || trace.marker?.color || trace.line?.color;
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch, trace.name);
    button.addEventListener("click", () => {
      const hide = !plot.hidden.has(place);
      const partners = trace.fill === "tonexty" ? [place - 1, place] : [place];
      for (const one of partners) hide ? plot.hidden.add(one) : plot.hidden.delete(one);
      button.setAttribute("aria-pressed", String(!hide));
      draw(plot);
    });
    const item = document.createElement("li");
    item.append(button);
    list.append(item);
  }
  plot.div.after(list);
}

// Arrow keys walk along a series and from one to the next; what is under the cursor is read out.
function addKeys(plot) {
  const walkable = plot.figure.data
    .map((trace, place) => [trace, place])
    .filter(([trace]) => trace.hoverinfo !== "skip")
    .map(([, place]) => place);
  let curve = walkable[plot.name === "sizes" ? walkable.length - 1 : 0];
  let point = -1;
  plot.div.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (event.key === "Escape") Plotly.Fx.unhover(plot.div);
    if (!step) return;
    event.preventDefault();
    const shown = walkable.filter((place) => !plot.hidden.has(place));
    if (!shown.length) return;
    const at = Math.max(0, shown.indexOf(curve)) + step[0];
    curve = shown[(at + shown.length) % shown.length];
    const trace = plot.figure.data[curve];
    point = Math.min(trace.x.length - 1, Math.max(0, point + step[1]));
    const unified = plot.figure.layout.hovermode === "x unified";
    const spot = unified ? { xval: trace.x[point] } : [{ curveNumber: curve, pointNumber: point }];
    Plotly.Fx.hover(plot.div, spot, trace.yaxis === "y2" ? "xy2" : "xy");
    const [x, y] = trace.orientation === "h" ? [trace.y[point], trace.x[point]] : [trace.x[point], trace.y[point]];
    const genome = trace.genome ? `, ${plot.figure.genomes[trace.genome[point]].replaceAll("<br>", ", ")}` : "";
    live.textContent = `${trace.name}, ${x}: ${y === null ? "nothing" : Math.round(y * 1000) / 1000}${genome}`;
  });
}

function followTheme() {
  const redraw = () => plots.forEach(draw);
  const chosen = root.dataset.theme || "system";
  for (const input of document.querySelectorAll(".theme input")) {
    input.checked = input.value === chosen;
    input.addEventListener("change", () => {
      root.dataset.theme = input.value === "system" ? "" : input.value;
      try {
        localStorage.setItem("epicortex-theme", root.dataset.theme);
      } catch {
        // A browser that remembers nothing for files still switches.
      }
      redraw();
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

function followReading() {
  const links = new Map(
    [...document.querySelectorAll("nav.contents a")].map((link) => [link.hash.slice(1), link]),
  );
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        links.forEach((link) => link.removeAttribute("aria-current"));
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );
  document.querySelectorAll("section[id]").forEach((section) => seen.observe(section));
}

async function drawAll() {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser cannot unpack the plots");
  const [library, figures] = await Promise.all([unpacked("library"), unpacked("figures")]);
  const script = document.createElement("script");
  script.textContent = library;
  document.head.append(script);
  for (const [name, figure] of Object.entries(JSON.parse(figures))) {
    const plot = { name, figure, div: document.getElementById(`plot-${name}`), hidden: new Set() };
    plots.set(name, plot);
    addLegend(plot);
    addKeys(plot);
    await draw(plot);
    // The page stays usable while it draws.
    await new Promise((resolve) => setTimeout(resolve));
  }
}

// The champion is the youngest: where its family tree is wider than the window, begin at its end.
function showChampion() {
  const tree = document.querySelector(".tree");
  if (tree) tree.scrollLeft = tree.scrollWidth;
}

followTheme();
followReading();
showChampion();
root.classList.remove("no-plots");
drawAll()
  .catch((error) => {
    root.classList.add("no-plots");
    console.warn(error);
  })
  .finally(() => root.setAttribute("data-drawn", ""));

"use strict";
// Draws the figures, sorts and filters the tables, and keeps both in the style sheet's colours.
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const boxes = [...document.querySelectorAll(".draw")];
  const views = {};
  const config = {
    responsive: true,
    displaylogo: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };
  const narrow = matchMedia("screen and (max-width: 40rem)");
  let plotly = null;

  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  function colour(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  function dressedTrace(trace, ink) {
    const { role, heat } = trace.meta || {};
    const made = { ...trace };
    if (heat) {
      made.colorscale = [0, 1, 2, 3].map((n) => [n / 3, colour(`heat-${heat}-${n}`)]);
      made.colorbar = { ...trace.colorbar, tickfont: { color: ink } };
      return made;
    }
    if (!role) return trace;
    const own = colour(`c-${role}`);
    for (const part of ["marker", "line", "error_x", "error_y"]) {
      if (trace[part]) made[part] = { ...trace[part], color: own };
    }
    if (trace.fillcolor) made.fillcolor = own;
    return made;
  }

  // A figure in the current colours. Its data is shared, not copied.
  function dressed(view) {
    const ink = colour("soft"), line = colour("line"), edge = colour("edge");
    const data = view.data.map((trace) => dressedTrace(trace, ink));
    const layout = { ...view.layout, font: { ...view.layout.font, color: ink } };
    for (const key of Object.keys(layout).filter((name) => /^[xy]axis/.test(name))) {
      layout[key] = { ...layout[key], gridcolor: line, zerolinecolor: edge, linecolor: edge };
    }
    layout.shapes = (layout.shapes || []).map((shape) => (
      { ...shape, line: { ...shape.line, color: edge } }));
    layout.hoverlabel = {
      bgcolor: colour("raised"), bordercolor: edge, font: { color: colour("ink") }, align: "left",
    };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: edge, activecolor: ink };
    return [data, layout];
  }

  // In a narrow window plotly's legend would take space from the plot.
  function legend(box, data) {
    const named = data.filter((trace) => trace.name && trace.showlegend !== false);
    let list = box.previousElementSibling;
    if (!list.classList.contains("legend")) {
      if (!named.length) return;
      list = document.createElement("ul");
      list.className = "legend";
      box.before(list);
    }
    list.replaceChildren(...(named.length > 1 ? named : []).map((trace) => {
      const item = document.createElement("li"), swatch = document.createElement("i");
      swatch.style.background = colour(`c-${trace.meta.role}`);
      // Plotly's names are escaped for its labels.
      item.append(swatch, new DOMParser().parseFromString(trace.name, "text/html").body.textContent);
      return item;
    }));
  }

  function draw(box) {
    const name = box.dataset.figure;
    const view = figures[name].views[views[name] || 0];
    const [data, layout] = dressed(view);
    if (narrow.matches) {
      layout.margin = { ...layout.margin, l: 36, r: 4, t: 10 };
      layout.showlegend = false;
      if (view.narrow) layout.yaxis.ticktext = view.narrow;
    }
    legend(box, narrow.matches ? data : []);
    return plotly.react(box, data, layout, config);
  }

  async function drawAll() {
    for (const box of boxes) {
      await draw(box);
      await new Promise((done) => setTimeout(done)); // keeps the page responsive
    }
  }

  async function load() {
    const text = document.getElementById("plotly").textContent.trim();
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(plain).text();
    document.head.append(script);
    plotly = window.Plotly;
  }

  // What captures or prints a page waits for its load event, and not for scripts that go on after
  // it. A frame whose document is still being written holds the event back until all is drawn.
  function holdLoadEvent() {
    const frame = document.createElement("iframe");
    frame.hidden = true;
    document.body.append(frame);
    frame.contentDocument.open();
    return () => {
      frame.contentDocument.close();
      frame.remove();
    };
  }

  async function start() {
    const release = holdLoadEvent();
    try {
      await load();
      await drawAll();
      root.dataset.drawn = "yes";
    } catch (error) {
      for (const box of boxes) {
        box.className = "failed";
        box.style.height = "";
        box.textContent = "This browser cannot draw the plot; its numbers are in the table below.";
      }
      root.dataset.drawn = "failed";
      console.error(error);
    }
    release();
  }

  for (const group of document.querySelectorAll(".views")) {
    group.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button || !plotly) return;
      const box = group.closest("figure").querySelector(".draw");
      views[box.dataset.figure] = Number(button.dataset.view);
      for (const one of group.children) one.setAttribute("aria-pressed", String(one === button));
      draw(box);
    });
  }

  // Colours: the system's, or the reader's choice, which is stored if the browser allows it.
  const themes = ["system", "light", "dark"];
  const theme = document.getElementById("theme");
  const kept = (value) => {
    try {
      if (value) localStorage.setItem("dftracer-theme", value);
      return localStorage.getItem("dftracer-theme");
    } catch {
      return value; // some browsers have no storage for a page from disk
    }
  };
  function choose(name) {
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    theme.textContent = `Theme: ${name}`;
    if (plotly) drawAll();
  }
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const now = themes.indexOf(root.dataset.theme || "system");
    const next = themes[(now + 1) % themes.length];
    kept(next);
    choose(next);
  });
  if (themes.includes(kept())) choose(kept());
  const queries = ["(prefers-color-scheme: dark)", "print"].map((text) => matchMedia(text));
  for (const query of [...queries, narrow]) {
    query.addEventListener("change", () => plotly && drawAll());
  }

  // For print: plots in the width and colours of the paper, and their tables opened.
  let opened = [];
  function printing(on) {
    if (on) opened.push(...document.querySelectorAll("details.data:not([open])"));
    for (const one of opened) one.open = on;
    if (!on) opened = [];
    for (const box of plotly ? boxes : []) {
      box.style.width = on ? "180mm" : "";
      draw(box);
      plotly.Plots.resize(box);
    }
  }
  addEventListener("beforeprint", () => printing(true));
  addEventListener("afterprint", () => printing(false));

  // Tables: a header sorts, first with the largest number or the first name on top.
  function value(cell) {
    if (!cell.classList.contains("n")) return cell.textContent;
    const text = cell.dataset.v ?? cell.textContent;
    return text === "" ? null : Number(text.replaceAll(",", ""));
  }
  function sort(table, head) {
    const heads = [...head.parentNode.children];
    const at = heads.indexOf(head);
    const first = head.classList.contains("n") ? "descending" : "ascending";
    const other = first === "ascending" ? "descending" : "ascending";
    const next = head.getAttribute("aria-sort") === first ? other : first;
    for (const one of heads) one.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row, order) => [value(row.cells[at]), order, row]);
    rows.sort(([a, i], [b, j]) => {
      if (a === null || b === null) return (a === null) - (b === null) || i - j;
      const less = typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
      return sign * less || i - j;
    });
    body.append(...rows.map((one) => one[2]));
  }
  for (const table of document.querySelectorAll("table")) {
    table.tHead.addEventListener("click", (event) => {
      const head = event.target.closest("th");
      if (head) sort(table, head);
    });
    const rows = table.tBodies[0].rows.length;
    if (rows <= 14 || table.closest("details")) continue;
    const button = document.createElement("button");
    const fold = (folded) => {
      table.classList.toggle("folded", folded);
      const all = rows.toLocaleString("en");
      button.textContent = folded ? `Show all ${all} rows` : "Show the first 12 rows";
      button.setAttribute("aria-expanded", String(!folded));
    };
    button.type = "button";
    button.className = "unfold";
    button.addEventListener("click", () => fold(!table.classList.contains("folded")));
    table.closest(".scroll").after(button);
    table.unfold = () => fold(false);
    fold(true);
  }
  for (const input of document.querySelectorAll("[data-filter]")) {
    const table = document.getElementById(input.dataset.filter);
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase();
      if (words && table.unfold) table.unfold();
      for (const row of table.tBodies[0].rows) {
        row.hidden = words !== "" && !row.textContent.toLowerCase().includes(words);
      }
    });
  }

  // The navigation marks the current section.
  const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.id);
      if (isIntersecting) link?.setAttribute("aria-current", "true");
      else link?.removeAttribute("aria-current");
    }
  }, { rootMargin: "-30% 0px -60% 0px" });
  for (const section of document.querySelectorAll("main > section")) watch.observe(section);

  start();
})();

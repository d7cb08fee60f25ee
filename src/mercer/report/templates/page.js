"use strict";
(async () => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const printing = matchMedia("print");  // on paper, everything is light
  const isDark = () => !printing.matches && (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
  const style = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const isCrowded = data.clusters > data.marked;  // then colours repeat, and numbers are those of chosen clusters
  const rest = data.light.length - 1;
  const colorOf = (c) => (isDark() ? data.dark : data.light)[isCrowded && c >= 0 ? c % rest : Math.min(c, rest)];
  const chosen = new Set();
  const charts = {};
  let rows = null;

  for (const item of data.charts) {
    const views = await Bokeh.embed.embed_item(item, item.target_id);
    const view = views.roots ? views.roots[0] : [...views][0];
    charts[item.target_id] = view.model;
  }
  const scatter = charts["scatter-chart"];
  const named = (chart, name) => [...chart.references()].find((model) => model.name === name);
  if (scatter) rows = named(scatter, "rows");

  const active = () => (byId("paint") ? byId("paint").value : "cluster");
  const place = () => (byId("map") ? +byId("map").value : 0);
  const count = () => rows.data.row.length;
  const filtered = () => (active() === "peer" ? "peer" : "cluster");  // layers colour, the list filters
  const isShown = (i) => chosen.size === 0 || chosen.has(rows.data[filtered()][i]);

  function paint() {
    const labels = rows.data[active()];
    rows.data = { ...rows.data, color: Array.from(labels, colorOf) };
  }

  function fit() {
    const pad = 0.06;
    const extent = (values) => {
      let low = Infinity, high = -Infinity;
      for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
      return high > low ? [low, high] : [low - 1, high + 1];
    };
    const [x0, x1] = extent(rows.data.x), [y0, y1] = extent(rows.data.y);
    let width = (x1 - x0) * (1 + 2 * pad), height = (y1 - y0) * (1 + 2 * pad);
    const shape = (scatter.inner_width || 4) / (scatter.inner_height || 3);
    const ratio = width / height;
    if (ratio > 0.2 && ratio < 5) {  // of one kind: a circle stays a circle
      if (ratio < shape) width = height * shape; else height = width / shape;
    }
    const x = (x0 + x1) / 2, y = (y0 + y1) / 2;
    scatter.x_range.setv({ start: x - width / 2, end: x + width / 2, reset_start: x - width / 2, reset_end: x + width / 2 });
    const [bottom, top] = data.maps[place()].flipped ? [y + height / 2, y - height / 2] : [y - height / 2, y + height / 2];
    scatter.y_range.setv({ start: bottom, end: top, reset_start: bottom, reset_end: top });
  }

  function mark() {
    const labels = rows.data[active()], sums = new Map();
    for (let i = 0; i < count(); i++) {
      if (!isShown(i)) continue;
      if (!sums.has(labels[i])) sums.set(labels[i], []);
      sums.get(labels[i]).push(i);
    }
    const marks = { x: [], y: [], text: [], color: [] };
    for (const [c, places] of sums) {
      if (isCrowded && active() !== "peer" && !(chosen.size && chosen.size <= data.marked) && sums.size > data.marked) continue;
      const middle = (name) => { const v = places.map((i) => rows.data[name][i]).sort((a, b) => a - b); return v[v.length >> 1]; };
      const x = middle("x"), width = scatter.x_range.end - scatter.x_range.start;
      const way = data.maps[place()].flipped ? -1 : 1;
      const heights = places.filter((i) => Math.abs(rows.data.x[i] - x) < 0.01 * width).map((i) => way * rows.data.y[i]).sort((a, b) => a - b);
      const y = way * heights[Math.floor(0.9 * heights.length)];  // the number is above most rows near the middle
      marks.x.push(x); marks.y.push(y); marks.text.push(String(c + data.first)); marks.color.push(colorOf(c));
    }
    named(scatter, "marks").data = marks;
    for (const name of ["outliers", "exemplars"]) {
      const isWanted = byId(`show-${name}`)?.checked && (name === "outliers" || !isCrowded || chosen.size > 0);
      const wanted = isWanted ? data[name].filter(isShown) : [];
      named(scatter, name).data = { x: wanted.map((i) => rows.data.x[i]), y: wanted.map((i) => rows.data.y[i]) };
    }
  }

  function show() {
    const mask = Array.from({ length: count() }, (_, i) => isShown(i));
    named(scatter, "shown").booleans = chosen.size ? mask : null;
    named(scatter, "ghost").visible = chosen.size > 0;
    mark();
    tell();
  }

  function selected() {
    const some = rows.selected.indices.filter(isShown);
    return { some: some.length > 0, places: some.length ? some : Array.from({ length: count() }, (_, i) => i).filter(isShown) };
  }

  const digits = (v) => (Number.isInteger(v) ? v.toLocaleString("en") : String(+v.toPrecision(4)));
  const short = (name) => (name.length > 40 ? name.slice(0, 39) + "…" : name);
  const title = (i) => `Row ${rows.data.row[i].toLocaleString("en")}, ${data.noun} ${rows.data.name[i]}`;
  const isIn = Object.fromEntries(["outliers", "exemplars"].map((name) => [name, new Set(data[name])]));
  const remarks = (i) => [
    data.texts[i],
    isIn.exemplars.has(i) ? `An exemplar of its ${data.noun}` : "",
    isIn.outliers.has(i) ? "An outlier" : "",
    rows.data.score ? `Outlier score ${digits(rows.data.score[i])} (1 is usual)` : "",
    active().startsWith("layer") ? `In ${data.noun} ${rows.data[active()][i]} of the layer` : "",
    data.words[rows.data.cluster[i]] ? `Its ${data.noun}: ${data.words[rows.data.cluster[i]]}` : "",
  ].filter(Boolean);
  const valuesOf = (i) => data.values.map((name, j) => [name, digits(rows.data[`v${j}`][i])]);
  const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });

  function hint(places, sx, sy) {
    const tip = byId("tip");
    tip.hidden = places.length === 0;
    if (tip.hidden) return;
    const lines = valuesOf(places[0]).flatMap(([name, value]) => [element("dt", short(name)), element("dd", value)]);
    const list = document.createElement("dl");
    list.append(...lines);
    const more = places.length > 1 ? [element("p", `and ${(places.length - 1).toLocaleString("en")} more here`)] : [];
    const said = remarks(places[0]).map((text) => element("p", text));
    tip.replaceChildren(element("strong", title(places[0])), list, ...said, ...more);
    const chart = byId("scatter-chart").getBoundingClientRect(), own = tip.getBoundingClientRect();
    const x = chart.left + sx + 16, y = chart.top + sy + 12;
    tip.style.left = `${Math.max(8, x + own.width > innerWidth - 8 ? x - own.width - 32 : x)}px`;
    tip.style.top = `${Math.max(8, Math.min(y, innerHeight - own.height - 8))}px`;
  }

  function tell() {
    const { some, places } = selected();
    const counts = new Map();
    for (const i of places) { const c = rows.data[active()][i]; counts.set(c, (counts.get(c) || 0) + 1); }
    const parts = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 8).map(([c, n]) => `${n.toLocaleString("en")} of ${data.noun} ${c + data.first}`);
    const what = some ? "selected" : "shown";
    const more = counts.size > 8 ? ", and others" : "";
    const alone = some && places.length === 1;
    if (alone) {
      byId("status").textContent = [title(places[0]), ...valuesOf(places[0]).map(([name, value]) => `${short(name)} ${value}`), ...remarks(places[0])].join("; ");
    } else byId("status").textContent = some || chosen.size
      ? `${places.length.toLocaleString("en")} rows ${what}: ${parts.join(", ")}${more}` : "";
    if (byId("rows-details").open) fillTable(places);
  }

  function fillTable(places) {
    const table = byId("rows-table"), most = 200;
    const line = (cells, tag, head) => {
      const tr = document.createElement("tr");
      cells.forEach((text, j) => {
        const cell = document.createElement(tag || (j ? "td" : "th"));
        cell.textContent = text;  // never as markup
        cell.className = "num";
        if (tag || !j) cell.scope = head ? "col" : "row";
        tr.append(cell);
      });
      return tr;
    };
    const thead = document.createElement("thead"), tbody = document.createElement("tbody");
    const text = data.texts.length ? ["Text"] : [];
    thead.append(line(["Row", data.noun[0].toUpperCase() + data.noun.slice(1), ...text, ...data.values], "th", true));
    for (const i of places.slice(0, most)) {
      tbody.append(line([rows.data.row[i].toLocaleString("en"), String(rows.data.name[i]), ...data.texts.slice(i, i + 1), ...valuesOf(i).map(([, value]) => value)]));
    }
    const caption = document.createElement("caption");
    caption.className = "note";
    caption.textContent = places.length > most ? `The first ${most} of ${places.length.toLocaleString("en")} rows` : `${places.length.toLocaleString("en")} rows`;
    table.replaceChildren(caption, thead, tbody);
  }

  function dress() {
    const ink = style("--ink"), soft = style("--soft"), line = style("--line"), card = style("--card");
    byId("theme").textContent = isDark() ? "Light" : "Dark";
    for (const chart of Object.values(charts)) {
      for (const model of chart.references()) {
        if (/Axis$/.test(model.type)) {
          model.setv({ axis_label_text_color: soft, major_label_text_color: soft, axis_line_color: line, major_tick_line_color: line });
        } else if (model.type === "Grid") {
          model.setv({ grid_line_color: line });
        } else if (model.name === "gap") {
          model.setv({ fill_color: style("--high"), line_color: null });
        }
      }
    }
    if (scatter) {
      named(scatter, "numbers").glyph.setv({ text_color: { value: ink } });
      named(scatter, "numbers").glyph.setv({ background_fill_color: { value: card } });
      for (const name of ["outliers-marks", "exemplars-marks"]) named(scatter, name).glyph.setv({ line_color: { value: ink } });
      named(scatter, "ghost").glyph.setv({ fill_color: { value: colorOf(99) } });
      paint();
    }
    const values = charts["spectrum-chart"] && named(charts["spectrum-chart"], "spectrum-values");
    if (values) values.data = { ...values.data, color: Array.from(values.data.kept, (kept) => colorOf(kept ? 0 : 99)) };
  }

  const restyle = () => { dress(); if (scatter) mark(); };
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; restyle(); });
  prefersDark.addEventListener("change", restyle);
  printing.addEventListener("change", () => { restyle(); if (scatter) scatter.toolbar.visible = !printing.matches; });
  dress();
  if (scatter) {
    if (innerWidth <= 560) scatter.height = 340;
    fit();
    mark();
    scatter.properties.inner_width.change.connect(() => { fit(); mark(); });
    rows.selected.properties.indices.change.connect(tell);
    rows.inspect.connect(([, { geometry }]) => hint(rows.inspected.indices, geometry.sx, geometry.sy));
    for (const kind of ["mouseleave", "wheel"]) byId("scatter-chart").addEventListener(kind, () => hint([]), { passive: true });
    byId("rows-details").addEventListener("toggle", tell);
    byId("map")?.addEventListener("change", (event) => {
      const j = event.target.value;
      rows.data = { ...rows.data, x: rows.data[`x${j}`], y: rows.data[`y${j}`] };
      const axes = [...scatter.references()].filter((model) => /Axis$/.test(model.type));
      const isMeant = data.maps[j].axes[0] !== "";  // of an embedding, coordinates mean nothing
      for (const model of scatter.references()) if (/(Axis|Grid)$/.test(model.type)) model.visible = isMeant;
      scatter.below.find((m) => axes.includes(m)).axis_label = data.maps[j].axes[0];
      scatter.left.find((m) => axes.includes(m)).axis_label = data.maps[j].axes[1];
      fit(); show();
    });
    byId("paint")?.addEventListener("change", () => { paint(); show(); });
    for (const name of ["outliers", "exemplars"]) byId(`show-${name}`)?.addEventListener("change", mark);
    const buttons = [...document.querySelectorAll("[data-cluster]")];
    const choose = () => {
      for (const b of buttons) b.setAttribute("aria-pressed", String(chosen.has(+b.dataset.cluster)));
      byId("all").hidden = chosen.size === 0;
      show();
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const c = +button.dataset.cluster;
        if (chosen.has(c)) chosen.delete(c); else chosen.add(c);
        choose();
      });
    }
    byId("all")?.addEventListener("click", () => { chosen.clear(); choose(); });
  }
  root.dataset.ready = "yes";
})();

"use strict";
(() => {
  // The levels of a segmentation: a slider over them, before and after, and the region under the pointer.
  const data = JSON.parse(document.getElementById("levels-data").textContent);
  const byId = (id) => document.getElementById(id);
  const { width, height, runs, pairs, strengths, sizes, colors } = data;
  const region = new Int32Array(width * height);  // of each pixel, -1 outside
  for (let i = 0, at = 0; i < runs.length; i += 2) {
    region.fill(runs[i], at, at + runs[i + 1]);
    at += runs[i + 1];
  }
  const n = sizes.length;
  const total = sizes.reduce((sum, size) => sum + size, 0);
  let level = null;  // { count, root: of each region, name, size, color: of each root }
  let pointed = -1;  // the root under the pointer

  function levelOf(count) {
    const root = Int32Array.from({ length: n }, (_, r) => r);
    for (let m = n - count - 1; m >= 0; m--) root[pairs[m][1]] = root[pairs[m][0]];
    const size = new Float64Array(n), color = Array.from({ length: n }, () => [0, 0, 0]);
    for (let r = 0; r < n; r++) {
      size[root[r]] += sizes[r];
      for (let c = 0; c < 3; c++) color[root[r]][c] += sizes[r] * colors[r][c];
    }
    const roots = [...new Set(root)].sort((a, b) => size[b] - size[a] || a - b);
    const name = new Map(roots.map((r, place) => [r, place + 1]));
    for (const r of roots) color[r] = color[r].map((sum) => Math.round(sum / size[r]));
    return { count, root, size, color, name };
  }

  function draw() {
    const canvas = byId("level-canvas"), context = canvas.getContext("2d");
    const picture = context.createImageData(width, height), out = picture.data;
    const filled = byId("level-fill").checked;
    const rootAt = (i) => (region[i] < 0 ? -1 : level.root[region[i]]);
    for (let y = 0, i = 0; y < height; y++) {
      for (let x = 0; x < width; x++, i++) {
        const here = rootAt(i);
        const isEdge = (x + 1 < width && rootAt(i + 1) !== here) || (y + 1 < height && rootAt(i + width) !== here);
        if (isEdge) out.set([255, 230, 0, 255], 4 * i);
        else if (here >= 0 && filled) out.set([...level.color[here], 255], 4 * i);
        else if (here >= 0 && here === pointed) out.set([255, 230, 0, 96], 4 * i);
      }
    }
    context.putImageData(picture, 0, 0);
    canvas.style.clipPath = `inset(0 0 0 ${100 - byId("level-wipe").value}%)`;
  }

  function show() {
    level = levelOf(+byId("level").value);
    pointed = -1;
    const weakest = level.count > 1 ? strengths[n - level.count] : 1;
    const noun = level.count === 1 ? "segment" : "segments";
    byId("level-text").textContent = `${level.count} ${noun}, contours of strength ${weakest.toFixed(2)} and more`;
    byId("level").setAttribute("aria-valuetext", byId("level-text").textContent);
    draw();
  }

  function point(event) {
    const canvas = byId("level-canvas"), box = byId("level-picture").getBoundingClientRect();
    const x = Math.floor(((event.clientX - box.left) / box.width) * width);
    const y = Math.floor(((event.clientY - box.top) / box.height) * height);
    const isInside = x >= 0 && y >= 0 && x < width && y < height && region[y * width + x] >= 0;
    const found = isInside ? level.root[region[y * width + x]] : -1;
    if (found === pointed) return;
    pointed = found;
    byId("level-hint").textContent = found < 0 ? "" :
      `Segment ${level.name.get(found)}: ${(100 * level.size[found] / total).toFixed(1)} % of the image, ` +
      `mean colour ${level.color[found].join(", ")}`;
    canvas.title = byId("level-hint").textContent;
    draw();
  }

  for (const name of ["level-wipe", "level-fill"]) byId(name).addEventListener("input", draw);
  byId("level").addEventListener("input", show);
  byId("level-picture").addEventListener("pointermove", point);
  byId("level-picture").addEventListener("pointerleave", () => { pointed = -1; byId("level-hint").textContent = ""; draw(); });
  byId("levels").hidden = false;
  show();
})();

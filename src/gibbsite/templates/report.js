"use strict";
(() => {
  const { docs, items } = JSON.parse(document.getElementById("figures").textContent);
  const facts = JSON.parse(document.getElementById("pixels").textContent);
  const GRAPHS = ["mean", "ratio", "removed"];
  const lit = new Set();
  let hovered = 0;
  let opacity = 0.85;
  let chosen = null;
  let isKept = false;

  const classes = new Map(facts.classes.map((item) => [item.code, item]));
  const model = (name) => Bokeh.documents[0]?.get_model_by_name(name);
  const mappers = () => [...Bokeh.documents[0].all_models].filter((found) => found.tags.includes("classes"));
  const hex = (share) => Math.round(255 * share).toString(16).padStart(2, "0");

  // ---- classes: those lit stay strong on the maps and in the graphs, the others step back.
  const isStrong = (code) => lit.size === 0 || lit.has(code);
  const paintMaps = () => {
    for (const mapper of mappers()) {
      mapper.palette = mapper.palette.map((colour, code) =>
        classes.has(code) ? classes.get(code).colour + hex(isStrong(code) ? opacity : 0.12 * opacity) : colour);
    }
  };
  const shown = () => hovered || (lit.size === 1 ? [...lit][0] : 0);
  const paintGraphs = () => {
    const code = shown();
    for (const graph of GRAPHS) {
      const source = model(`classes-${graph}`);
      const { data } = source;
      const weak = (other) => (code ? other !== code : !isStrong(other));
      source.data = { ...data, alpha: data.code.map((other) => (weak(other) ? 0.16 : 1)) };
      const k = data.code.indexOf(code);
      const colour = code ? classes.get(code).colour : "#888888";
      model(`lit-glyph-${graph}`).glyph.line_color = { value: colour };
      model(`lit-${graph}`).data = k < 0 ? { x: [], y: [] } : { x: data.xs[k], y: data.ys[k] };
      if (data.low) {
        model(`band-glyph-${graph}`).glyph.fill_color = { value: colour };
        model(`band-${graph}`).data = k < 0 ? { x: [], y: [] } : outline(data.xs[k], data.low[k], data.high[k]);
      }
    }
  };
  // The band between two lines as one outline per run without a gap, NaN between them.
  const outline = (x, low, high) => {
    const band = { x: [], y: [] };
    let run = [];
    const close = () => {
      if (run.length > 1) {
        const back = [...run].reverse();
        band.x.push(...run.map((i) => x[i]), ...back.map((i) => x[i]), NaN);
        band.y.push(...run.map((i) => high[i]), ...back.map((i) => low[i]), NaN);
      }
      run = [];
    };
    for (let i = 0; i < x.length; i++) {
      Number.isFinite(low[i]) && Number.isFinite(high[i]) ? run.push(i) : close();
    }
    close();
    return band;
  };

  // ---- pixels: where the pointer is, which class and spectrum the pixel there has.
  const pixelAt = (number, x, y) => {
    const scene = facts.scenes[number];
    const [left, right, bottom, top] = scene.extent;
    const row = Math.floor(((top - y) / (top - bottom)) * scene.rows.length);
    const col = Math.floor(((x - left) / (right - left)) * scene.cols.length);
    const isInside = row >= 0 && col >= 0 && row < scene.rows.length && col < scene.cols.length;
    return isInside ? { number, row, col } : null;
  };
  const lookUp = ({ number, row, col }, column) => {
    const scene = facts.scenes[number];
    const down = scene.isMap ? scene.rows.length - 1 - row : row;
    return model(`pixels-${number}`).data[column][0][down * scene.cols.length + col];
  };
  const spectrumOf = ({ number, row, col }) => {
    const scene = facts.scenes[number];
    const codes = model(`spectra-${number}`).data;
    const far = (n) => Math.floor(n / scene.spectraFactor);
    // The last lines and samples may lie behind the last that has a spectrum.
    const across = Math.min(far(col), scene.spectraCols - 1);
    const index = Math.min(far(row), scene.spectraRows - 1) * scene.spectraCols + across;
    const spectrum = [...facts.mean];
    facts.axis.forEach((axis, n) => {
      const amount = codes[n][index] * facts.step;
      for (let band = 0; band < axis.length; band++) {
        spectrum[band] += amount * axis[band];
      }
    });
    return spectrum;
  };
  const opened = (values, filler) => {
    const out = [...values];
    [...facts.gaps].reverse().forEach((at) => out.splice(at, 0, filler(at)));
    return out;
  };
  const waves = opened(facts.wavelength, (at) => (facts.wavelength[at - 1] + facts.wavelength[at]) / 2);
  const choose = (pixel) => {
    const code = pixel ? lookUp(pixel, "code") : 0;
    chosen = code ? pixel : null;
    hovered = code;
    const source = model("pixel-mean");
    source.data = chosen ? { x: waves, y: opened(spectrumOf(chosen), () => NaN) } : { x: [], y: [] };
    const readout = document.getElementById("readout");
    readout.style.setProperty("--class", code ? classes.get(code).colour : "");
    if (chosen) {
      const scene = facts.scenes[pixel.number];
      const kept = isKept ? " · kept" : "";
      readout.textContent = `${scene.name}, line ${scene.rows[pixel.row] + 1}, sample ${scene.cols[pixel.col] + 1}: `
        + `${classes.get(code).name}, probability ${lookUp(pixel, "percent")} %${kept}`;
    } else {
      readout.textContent = pixel ? "No data here." : "No pixel chosen.";
    }
    facts.scenes.forEach((scene, number) => {
      const isHere = isKept && chosen && chosen.number === number;
      model(`marker-${number}`).data = isHere ? centre(chosen) : { x: [], y: [] };
    });
    paintGraphs();
  };
  const centre = ({ number, row, col }) => {
    const scene = facts.scenes[number];
    const [left, right, bottom, top] = scene.extent;
    return {
      x: [left + ((col + 0.5) / scene.cols.length) * (right - left)],
      y: [top - ((row + 0.5) / scene.rows.length) * (top - bottom)],
    };
  };
  let waiting = null;
  const soon = (work) => {
    if (!waiting) {
      requestAnimationFrame(() => { const next = waiting; waiting = null; next(); });
    }
    waiting = work;
  };
  window.gibbsite = {
    point: (number, x, y) => { if (!isKept) soon(() => choose(pixelAt(number, x, y))); },
    leave: () => { if (!isKept) soon(() => choose(null)); },
    pin: (number, x, y) => {
      const pixel = pixelAt(number, x, y);
      isKept = pixel !== null && lookUp(pixel, "code") > 0;
      choose(isKept ? pixel : null);
    },
    get chosen() { return chosen; },
  };
  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
  for (const frame of document.querySelectorAll(".map")) {
    const number = Number(frame.dataset.scene);
    const { rows, cols } = facts.scenes[number];
    frame.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        isKept = false;
        choose(null);
      } else if (event.key in STEPS) {
        event.preventDefault();
        const [down, right] = STEPS[event.key].map((step) => step * (event.shiftKey ? 10 : 1));
        const from = chosen?.number === number ? chosen : { row: rows.length >> 1, col: cols.length >> 1 };
        const within = (n, length) => Math.max(0, Math.min(length - 1, n));
        const pixel = { number, row: within(from.row + down, rows.length), col: within(from.col + right, cols.length) };
        isKept = true;
        if (lookUp(pixel, "code")) {
          choose(pixel);
        }
      }
    });
  }

  // ---- controls
  const chips = [...document.querySelectorAll(".chip[data-code]")];
  const refresh = () => {
    for (const chip of chips) {
      chip.setAttribute("aria-pressed", String(lit.has(Number(chip.dataset.code))));
    }
    paintMaps();
    paintGraphs();
  };
  for (const chip of chips) {
    const code = Number(chip.dataset.code);
    chip.addEventListener("click", () => {
      lit.has(code) ? lit.delete(code) : lit.add(code);
      refresh();
    });
  }
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      lit.clear();
      const shown = {
        all: () => false,
        new: (chip) => chip.dataset.known === "false",
        unmixed: (chip) => chip.dataset.known === "false" && chip.dataset.mixed === "false",
      }[button.dataset.show];
      chips.filter(shown).forEach((chip) => lit.add(Number(chip.dataset.code)));
      refresh();
    });
  }
  for (const button of document.querySelectorAll("[data-light]")) {
    button.addEventListener("click", () => {
      lit.clear();
      lit.add(Number(button.dataset.light));
      refresh();
      document.getElementById("map").scrollIntoView();
    });
  }
  document.getElementById("opacity").addEventListener("input", (event) => {
    opacity = event.target.value / 100;
    soon(paintMaps);
  });
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });

  // ---- names at the ends of lines: room for the longest, or none of them where it would take a third of the graph.
  const pen = document.createElement("canvas").getContext("2d");
  const makeRoom = (plot) => {
    const names = plot.renderers.find((found) => found.tags.includes("names"));
    const range = plot.x_range;
    if (!names || !plot.inner_width) {
      return;
    }
    range.last ??= range.end;
    pen.font = "bold 12px system-ui, sans-serif";
    const width = Math.max(0, ...names.data_source.data.text.map((text) => pen.measureText(text).width));
    const share = width ? (width + 14) / plot.inner_width : 0;
    names.visible = share < 0.34;
    const end = range.start + (range.last - range.start) / (1 - (names.visible ? share : 0));
    range.setv({ end, reset_end: end });
  };
  Bokeh.embed.embed_items(docs, items).then(() => {
    for (const plot of Bokeh.documents[0].roots()) {
      if (plot.x_range?.tags.includes("wavelength")) {
        makeRoom(plot);
        plot.properties.inner_width.change.connect(() => makeRoom(plot));
      }
    }
    refresh();
    document.documentElement.dataset.ready = "true";
  });
})();

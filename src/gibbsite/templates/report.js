"use strict";
(() => {
  const { docs, items } = JSON.parse(document.getElementById("figures").textContent);
  const hidden = new Set();
  let lit = 0;

  const models = () => (Bokeh.documents.length ? [...Bokeh.documents[0].all_models] : []);
  const codeOf = (model) => {
    const tag = model.tags.find((text) => /^class-\d+$/.test(text));
    return tag ? Number(tag.slice(6)) : 0;
  };

  // A class is shown when it is not switched off; while one is lit, the lines of the others step back.
  const dim = (model, code) => {
    if (model.tags.includes("line")) {
      model.glyph.line_alpha = { value: lit && code !== lit ? 0.15 : 1 };
    } else if (model.tags.includes("spread")) {
      model.glyph.fill_alpha = { value: lit ? (code === lit ? 0.22 : 0.02) : 0.09 };
    }
  };
  const paint = () => {
    for (const model of models()) {
      const code = codeOf(model);
      if (code) {
        model.visible = !hidden.has(code);
        dim(model, code);
      } else if (model.tags.includes("classes")) {
        model.all ??= [...model.palette];
        model.palette = model.all.map((colour, value) => (hidden.has(value) ? "rgba(0, 0, 0, 0)" : colour));
      }
    }
  };
  const light = (code) => {
    const next = hidden.has(code) ? 0 : code;
    if (next !== lit) {
      lit = next;
      models().forEach((model) => dim(model, codeOf(model)));
    }
  };
  window.gibbsite = { light };

  const chips = [...document.querySelectorAll(".chip[data-code]")];
  const press = () => {
    for (const chip of chips) {
      chip.setAttribute("aria-pressed", String(!hidden.has(Number(chip.dataset.code))));
    }
    paint();
  };
  for (const chip of chips) {
    const code = Number(chip.dataset.code);
    chip.addEventListener("click", () => {
      hidden.has(code) ? hidden.delete(code) : hidden.add(code);
      lit = 0;
      press();
    });
    chip.addEventListener("pointerenter", () => light(code));
    chip.addEventListener("pointerleave", () => light(0));
    chip.addEventListener("focus", () => light(code));
    chip.addEventListener("blur", () => light(0));
  }
  for (const button of document.querySelectorAll("[data-show]")) {
    button.addEventListener("click", () => {
      hidden.clear();
      if (button.dataset.show === "new") {
        chips.filter((chip) => chip.dataset.known === "true").forEach((chip) => hidden.add(Number(chip.dataset.code)));
      }
      press();
    });
  }
  for (const frame of document.querySelectorAll(".map")) {
    frame.addEventListener("pointerleave", () => light(0));
  }
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
  Bokeh.embed.embed_items(docs, items);
})();

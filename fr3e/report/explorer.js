"use strict";
// Anchors, blocks, states and alpha for any K. All text reaches the page as text nodes, never as markup.

const trajectories = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

// The first K positions of the ranking, each at least minGap from those before it, sorted (Eq. 7).
function chooseAnchors(order, count, minGap) {
  const taken = [];
  for (const position of order) {
    if (taken.length === count) break;
    if (taken.every((other) => Math.abs(position - other) >= minGap)) taken.push(position);
  }
  return taken.sort((a, b) => a - b);
}

// At the run's own K the anchors are the logged ones; else they are chosen here.
function anchorsFor(t, count) {
  if (t.anchors && count === t.run_k) return t.anchors.slice();
  return chooseAnchors(t.order, count, t.min_gap);
}

// States in order: {k: prefix length, anchor: position or null}; equal states are listed once (Eq. 8-10).
function statesOf(t, anchors) {
  const states = t.root ? [{ k: 0, anchor: null }] : [];
  for (const anchor of anchors) {
    const k = anchor + (t.in_prefix ? 1 : 0);
    const equal = states.find((state) => state.k === k);
    if (equal) equal.anchor = anchor;
    else states.push({ k, anchor });
  }
  return states;
}

// V where it was measured, and alpha (Eq. 14) where the state before it was measured too.
function withValues(t, states, count) {
  let previous;
  return states.map((state, j) => {
    const value = t.measured[state.k];
    const known = value !== undefined;
    const delta = known && j > 0 && previous !== undefined ? value - previous : undefined;
    let alpha = delta === undefined ? undefined : Math.exp(-delta);
    if (known && t.alpha && count === t.run_k && t.alpha[state.k] !== undefined) alpha = t.alpha[state.k];
    if (known && j === 0 && t.root && alpha === undefined) alpha = 1;
    previous = value;
    return { ...state, value, delta, alpha };
  });
}

function visible(text) {
  return text.replace(/\n/g, "⏎").replace(/\t/g, "⇥");
}

const RAMP = [[255, 255, 255], [253, 208, 140], [236, 120, 40], [140, 45, 4]];
function shade(share) {
  const x = Math.min(Math.max(share, 0), 1) * (RAMP.length - 1);
  const i = Math.min(Math.floor(x), RAMP.length - 2);
  const rgb = RAMP[i].map((low, c) => Math.round(low + (x - i) * (RAMP[i + 1][c] - low)));
  const dark = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] < 130;
  return { background: `rgb(${rgb.join(",")})`, color: dark ? "#fff" : "#1b1f24" };
}

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function range(t, from, to) {
  if (from > to) return "(empty)";
  if (t.spaced) return from === to ? t.tokens[from] : `${t.tokens[from]}–${t.tokens[to]}`;
  const text = visible(t.tokens.slice(from, to + 1).join(""));
  return text.length > 160 ? `${text.slice(0, 80)} … ${text.slice(-70)}` : text;
}

function drawStrip(t, anchors, states, top) {
  const cuts = new Map(states.filter((s) => s.anchor !== null).map((s) => [s.k, states.indexOf(s)]));
  const strip = at("strip");
  const bars = at("bars");
  strip.replaceChildren();
  bars.replaceChildren();
  strip.className = t.spaced ? "strip spaced" : "strip";
  let block = 1;
  const cut = (position) => {
    if (!cuts.has(position)) return;
    const mark = element("span", "│", "cut");
    mark.append(element("sub", `S${cuts.get(position) + (t.root ? 0 : 1)}`));
    strip.append(mark);
    if (position > 0) block += 1;
  };
  const rows = [];
  t.tokens.forEach((token, position) => {
    cut(position);
    const isAnchor = anchors.includes(position);
    const span = element("span", visible(token), `token ${block % 2 ? "odd" : "even"}${isAnchor ? " anchor" : ""}`);
    Object.assign(span.style, shade(t.entropies[position] / top));
    span.title = `position ${position + 1}, entropy ${t.entropies[position].toFixed(3)} nat`;
    span.dataset.position = position;
    strip.append(span);
    if (token.endsWith("\n")) strip.append("\n");
    const bar = element("span", undefined, isAnchor ? "anchor" : "");
    bar.style.height = `${Math.max(1, (100 * t.entropies[position]) / top)}%`;
    bars.append(bar);
    rows.push([position + 1, visible(token), t.entropies[position].toFixed(4), block, isAnchor ? "anchor" : ""]);
  });
  cut(t.tokens.length);
  at("tokens").tBodies[0].replaceChildren(
    ...rows.map((cells) => {
      const row = element("tr");
      cells.forEach((cell, i) => row.append(element("td", String(cell), i === 1 ? "text" : "")));
      return row;
    }),
  );
}

function drawStates(t, states) {
  const body = at("states").tBodies[0];
  body.replaceChildren();
  let start = 0;
  states.forEach((state, j) => {
    const row = element("tr");
    row.dataset.k = state.k;
    const head = element("th", state.anchor === null || state.k === 0 ? "S0 (the prompt alone)" : `S${j + (t.root ? 0 : 1)}`);
    head.scope = "row";
    row.append(head);
    const cell = (text, className, label) => {
      const made = element("td", text, className);
      made.dataset.label = label;
      row.append(made);
      return made;
    };
    cell(`${state.k} tokens`, "number", "Prefix");
    const anchor = state.anchor;
    cell(anchor === null ? "—" : `${t.spaced ? t.tokens[anchor] : `“${visible(t.tokens[anchor])}”`} (${t.entropies[anchor].toFixed(2)})`, "text", "Anchor");
    cell(state.k === 0 ? "—" : range(t, start, state.k - 1), "text block", "Block that it adds");
    start = state.k;
    if (state.value === undefined) {
      cell("not measured", "missing value", "V");
    } else {
      const value = cell(state.value.toFixed(3), "number value", "V");
      const meter = element("span", undefined, "meter");
      const fill = element("i");
      fill.style.width = `${100 * state.value}%`;
      meter.append(fill);
      value.append(meter);
    }
    cell(state.delta === undefined ? "—" : (state.delta >= 0 ? "+" : "−") + Math.abs(state.delta).toFixed(3), "number delta", "V − V before");
    cell(state.alpha === undefined ? "—" : state.alpha.toFixed(4), "number alpha", "alpha");
    if (state.alpha !== undefined && Math.abs(state.alpha - 1) > 1e-9) row.className = state.alpha < 1 ? "brake" : "amplify";
    body.append(row);
  });
  const row = element("tr");
  const head = element("th", "Rest");
  head.scope = "row";
  row.append(head, element("td", `${t.tokens.length - start} tokens`, "number"), element("td", "—", "text"));
  row.append(element("td", range(t, start, t.tokens.length - 1), "text block"));
  const end = element("td", "never a state", "missing");
  end.colSpan = 3;
  row.append(end);
  row.cells[1].dataset.label = "Length";
  row.cells[2].dataset.label = "Anchor";
  row.cells[3].dataset.label = "Last block";
  row.cells[4].dataset.label = "";
  body.append(row);
}

function summary(t, anchors, states) {
  const measured = states.filter((s) => s.value !== undefined).length;
  const names = anchors.map((a) => (t.spaced ? t.tokens[a] : String(a + 1)));
  const where = anchors.length ? `${t.spaced ? "at" : "at positions"} ${names.join(", ")}` : "none";
  return `${anchors.length} ${anchors.length === 1 ? "anchor" : "anchors"} (${where}), ${states.length} ${states.length === 1 ? "state" : "states"}, V measured in ${measured}.`;
}

function note(t, count) {
  if (t.measured_note) {
    return count <= t.run_k
      ? `V is published for the four states of K = 4: ${t.measured_note}. alpha of the first state has no predecessor and is not computed.`
      : `V is published for the four states of K = 4; for K = ${count} there are states from which nobody has sampled.`;
  }
  const own = `The run (${t.run}) explored with K = ${t.run_k}`;
  if (count === t.run_k) return `${own}: every V and alpha here was measured.`;
  const other = t.score !== "entropy" ? ` Its anchors were chosen by ${t.score}; those shown here are the highest entropies.` : "";
  return `${own}. Other states were never sampled from, so their V is unknown. Where V of a state and of the one before it were both measured, alpha follows from Eq. 14.${other}`;
}

function draw() {
  const t = trajectories[at("which").selectedIndex];
  const count = Number(at("k").value);
  const anchors = anchorsFor(t, count);
  const states = withValues(t, statesOf(t, anchors), count);
  const top = Math.max(...t.entropies, 1e-6);
  at("k-value").textContent = count;
  at("less").disabled = count <= Number(at("k").min);
  at("more").disabled = count >= Number(at("k").max);
  at("high").textContent = `${top.toFixed(2)} nat`;
  at("question").textContent = t.gold === undefined ? t.question : `${t.question}   (answer ${t.gold})`;
  at("summary").textContent = summary(t, anchors, states);
  at("measured").textContent = note(t, count);
  drawStrip(t, anchors, states, top);
  drawStates(t, states);
}

function choose() {
  const t = trajectories[at("which").selectedIndex];
  at("k").max = Math.max(t.order.length, t.run_k);
  at("k").value = t.measured_note ? 2 : t.run_k;
  draw();
}

function step(by) {
  at("k").value = Number(at("k").value) + by;
  draw();
}

trajectories.forEach((t) => at("which").append(element("option", t.title)));
at("which").addEventListener("change", choose);
at("k").addEventListener("input", draw);
at("less").addEventListener("click", () => step(-1));
at("more").addEventListener("click", () => step(1));
// Open with a real trajectory where there is one.
at("which").selectedIndex = Math.min(1, trajectories.length - 1);
choose();

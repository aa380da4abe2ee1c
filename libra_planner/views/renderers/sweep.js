"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const { columns, rows } = data, $ = id => document.getElementById(id);
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#b59f00"];
const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const SHAPES = ["M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0", "M-3.6,-3.6h7.2v7.2h-7.2z", "M0,-4.6L4.4,3.6H-4.4z",
  "M0,-5.2L5.2,0L0,5.2L-5.2,0z", "M0,4.6L4.4,-3.6H-4.4z", "M-4,-1.4h2.6v-2.6h2.8v2.6h2.6v2.8h-2.6v2.6h-2.8v-2.6h-2.6z",
  "M-4.6,0L3.6,-4.4V4.4z", "M4.6,0L-3.6,-4.4V4.4z"];
const DRAWN = new Set(["svg", "g", "path", "line", "rect", "text", "title"]);
const at = name => columns.findIndex(one => one.name === name);
const best = new Set(data.front.map(([i]) => i));  // On the frontier of any work.
const unsold = new Set(data.unsold), CROSS = "M-4,-4L4,4M-4,4L4,-4";  // Nobody prices their servers.
const state = { sort: -1, down: false, words: [], rules: [], lost: "", brushes: new Map(), n: 100, width: 0, zoom: null, x: at(data.x), y: at(data.y) };
let picture, far, front, parallel;
/** Times of different work do not compare: a picture holds one, -1 is all of them. */
function choose(work) {
  picture = data.each[work] ?? data;
  [far, front, parallel] = [new Set(picture.far), new Map(picture.front), picture.parallel.map(at)];
  Object.assign(state, { work, all: !far.size, colour: at(picture.colour), marker: at(picture.marker) });
}
choose(data.each.length ? 0 : -1);
let active = rows.map((_, i) => i), isActive = new Set(active);

function make(tag, attributes = {}, ...inside) {
  const node = DRAWN.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...inside);
  return node;
}
for (const one of columns) {
  const format = new Intl.NumberFormat("en-US", { minimumFractionDigits: one.axis ? 0 : one.digits, maximumFractionDigits: one.digits });
  one.shown = v => v === null ? "-" : v === true ? "yes" : v === false ? "no" : one.text ? String(v) : format.format(v * one.scale);
  const k = columns.indexOf(one), known = rows.map(row => row[k]).filter(v => v !== null);
  if (one.text) one.values ??= [...new Set(known)].sort();
  one.title = `${one.label}${one.unit ? `, ${one.unit}` : ""}`;
}
/** Whether pictures hold a design: of their work, and beyond the frontier's neighbourhood only where all are wanted. */
const inView = i => (state.all || !far.has(i)) && ofWork(i);
/** Whether a design is of the work that is chosen. */
const ofWork = i => state.work < 0 || data.work_of[i] === state.work;
/** The ends of columns among the designs that pictures hold. */
function measure() {
  for (const [k, one] of columns.entries()) {
    if (one.text) continue;
    const found = rows.filter((row, i) => row[k] !== null && inView(i)).map(row => row[k]);
    [one.low, one.high] = found.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [Infinity, -Infinity]);
    one.log = !one.axis && one.low > 0 && one.high > data.many * one.low;
  }
}
const words = rows.map(row => columns.map((one, k) => one.shown(row[k])).join(" ").toLowerCase());
const NUMBER = String.raw`[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:e[-+]?\d+)?`, END = String.raw`(?![^\s,])`;
const escaped = text => text.replace(/[^\w\s]/g, String.raw`\$&`), oneOf = texts => [...new Set(texts)].sort((a, b) => b.length - a.length).map(escaped).join("|");
/** Units that may stand behind a number: those of headings, and whatever else looks like one. */
const UNIT = `(?:${oneOf(columns.flatMap(one => [one.unit, one.base, one.unit || one.text ? "" : one.short]).filter(Boolean))}|${String.raw`[kmgtpunµ]?i?(?:b|bytes?|bits?)(?:/s|ps)?|[mnuµ]?s|sec(?:onds?)?|min|h|hours?|days?|[kmb]?(?:\$|usd)|\$[kmb]?|[kmgt]?w|%`})`;
const SIGNS = { "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b, "=": (a, b) => a === b, "!=": (a, b) => a !== b };
/** Columns by what a filter may call them, long names first: their names in files, or their headings. */
const named = columns.flatMap((one, k) => [[one.name, k, 1], [one.label, k, one.scale], [one.short, k, one.scale]])
  .map(([name, ...more]) => [name.toLowerCase(), ...more]).sort((a, b) => b[0].length - a[0].length);
/** Values of texts that a row shows, by what a filter may write, and those that are no single word. */
const said = new Map(columns.flatMap((one, k) => one.text ? one.values.flatMap(v => [String(v), one.shown(v)].map(text => [text.toLowerCase(), k])) : []));
const phrases = [...said].filter(([text, k]) => columns[k].axis && /[\s,<>=]/.test(text)).map(([text]) => text);
const compared = new RegExp(String.raw`(?<![^\s,])(${oneOf(named.map(([name]) => name))})\s*(<=|>=|!=|==?|<|>)\s*("[^"]*"|'[^']*'|${phrases.length ? `(?:${oneOf(phrases)})${END}|` : ""}${NUMBER}\s*${UNIT}${END}|${NUMBER}${END}|[^\s,]+)`, "gi");
const listed = new RegExp(String.raw`(?<![^\s,])(${oneOf(named.map(([name]) => name))})\s+(not\s+)?in\s*\[((?:"[^"]*"|'[^']*'|[^\]"'])*)\]`, "gi");
const counted = new RegExp(String.raw`^([-+]?[\d.][\d.,]*(?:e[-+]?\d+)?)\s*(${UNIT})$`, "i");
/** Whether a value meets a comparison: numbers in the unit of the heading, under a name of files in that of files. */
function meetsRule(v, [k, scale, sign, text]) {
  if (v === null) return false;
  if (sign === "in") return text.some(rule => meetsRule(v, rule));
  if (sign === "not in") return !text.some(rule => meetsRule(v, rule));
  const compare = SIGNS[sign], number = Number(text.replace(/,(?=\d{3})/g, ""));
  if (columns[k].text || typeof v !== "number") return compare([String(v), columns[k].shown(v)].some(own => own.toLowerCase() === text) ? text : "", text);
  const own = v * scale, isSame = Math.abs(own - number) <= 1e-9 * Math.abs(number), isShown = scale === columns[k].scale && columns[k].shown(v) === text;
  return compare(isSame || (isShown && sign.includes("=")) ? number : own, number);
}
/** How many letters differ between two names; two that changed places are one. */
function steps(a, b) {
  const d = [...Array(a.length + 1)].map((_, i) => [...Array(b.length + 1)].map((_, j) => i && j ? 0 : i + j));
  for (let i = 1; i <= a.length; i++) for (let j = 1; j <= b.length; j++) {
    d[i][j] = Math.min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] !== b[j - 1]));
    if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) d[i][j] = Math.min(d[i][j], d[i - 2][j - 2] + 1);
  }
  return d[a.length][b.length];
}
/** The name of a column that a comparison may have meant; nothing where none is near. */
function meant(part) {
  const name = part.toLowerCase().split(/\s*[<>=!]/)[0];
  const [best] = named.map(([own]) => [steps(name, own), own]).sort((a, b) => a[0] - b[0]);
  return name && best[0] > 0 && best[0] <= Math.max(1, name.length / 3) ? ` (did you mean ${best[1]}?)` : "";
}
/** Read a comparison of a column: a rule, or why there is none. */
function comparison(all, name, sign, value) {
  const [, k, scale] = named.find(([own]) => own === name.toLowerCase()), one = columns[k], plain = value.replace(/^(["'])(.*)\1$/, "$2");
  if (one.text) return /[<>]/.test(sign) ? { lost: all } : { rule: [k, scale, sign.replace("==", "="), plain.toLowerCase()] };
  const [, number, unit] = plain.match(counted) ?? [0, plain, ""], own = (scale === one.scale ? one.unit : one.base) || one.short;
  if (number === "" || Number.isNaN(Number(number.replace(/,(?=\d{3})/g, "")))) return { lost: all };
  if (unit && unit !== own) return { lost: `${all} (${one.unit || scale !== one.scale ? `expected ${own}, or` : "expected"} no unit)` };
  return { rule: [k, scale, sign.replace("==", "="), number.toLowerCase()] };
}
const isSaid = word => words.some(text => text.includes(word.toLowerCase()));
/** Read what a filter asks for: comparisons of columns, values with signs inside, and words; what is neither is lost. */
function ask(text) {
  const rules = [], lost = [], asked = [], noise = new Set();
  const read = text.replace(listed, (all, name, not, inside) => {
    const each = (inside.match(/"[^"]*"|'[^']*'|[^,]+/g) ?? []).map(one => one.trim()).filter(Boolean).map(value => comparison(`${name} == ${value}`, name, "=", value)), wrong = each.filter(one => one.lost);
    if (wrong.length || !each.length) lost.push(...wrong.map(one => one.lost), ...each.length ? [] : [all]); else rules.push([each[0].rule[0], 1, not ? "not in" : "in", each.map(one => one.rule)]);
    return " and ";
  });
  const left = read.replace(compared, (...found) => {
    const { rule, lost: why } = comparison(...found), behind = read.slice(found[4] + found[0].length).match(/^\s+(?!(?:and|or|in)\b)([^\s,<>=!]+)(?=\s*(?:$|,|\s(?:and|or)\b))/i), one = rule && columns[rule[0]];
    if (one && !one.text && behind && !isSaid(behind[1])) { lost.push(`${found[0]} ${behind[1]} (expected ${one.unit ? `${one.unit}, or ` : ""}no unit)`); noise.add(behind[1].toLowerCase()); }
    else if (rule) rules.push(rule); else lost.push(why);
    return " and ";
  });
  if (left === text && !/[<>=]/.test(text)) asked.push(...text.toLowerCase().split(/\s+/).filter(Boolean));
  else for (const one of left.split(/(?<![^\s,])and(?![^\s,])/i)) {
    const part = one.replace(/^[\s,]+|[\s,]+$/g, ""), k = said.get(part.toLowerCase());
    if (!/[<>=]/.test(part)) asked.push(...part.toLowerCase().split(/[\s,]+/).filter(Boolean));
    else if (k !== undefined) rules.push([k, 1, "=", part.toLowerCase()]);
    else lost.push(part + meant(part));
  }
  if (rules.length && asked.includes("or")) lost.push(`or (all of a filter's parts hold, with "and" between them)`);
  Object.assign(state, { words: asked.filter(word => !noise.has(word) && (word !== "or" || !rules.length)), rules, lost: lost.join(", ") });
}
/** Where a value stands between the ends of its column, 0 to 1; values of few at equal distances. */
function place(one, v, even = true, [low, high] = [one.low, one.high]) {
  if (v === null) return null;
  if (one.values && (even || one.text)) return one.values.length > 1 ? one.values.indexOf(v) / (one.values.length - 1) : 0.5;
  const size = x => one.log ? Math.log(x) : x;
  return high > low ? (size(v) - size(low)) / (size(high) - size(low)) : 0.5;
}
/** The value at a place of a picture. */
function valueAt(one, t, [low, high] = [one.low, one.high]) {
  return one.log ? low * (high / low) ** t : low + t * (high - low);
}
function ramp(t) {
  const k = Math.min(RAMP.length - 2, Math.floor(t * (RAMP.length - 1))), f = t * (RAMP.length - 1) - k;
  return `rgb(${RAMP[k].map((v, j) => Math.round(v + f * (RAMP[k + 1][j] - v))).join()})`;
}
function colour(v) {
  const one = columns[state.colour];
  if (!one) return COLOURS[0];
  if (v === null) return "#999";
  return one.values && one.values.length <= COLOURS.length ? COLOURS[one.values.indexOf(v)] : ramp(place(one, v));
}
const hasPoint = i => [state.x, state.y].every(k => k < 0 || rows[i][k] !== null);
const colourOf = i => colour(state.colour < 0 ? null : rows[i][state.colour]);
const shapeOf = i => SHAPES[state.marker < 0 ? 0 : Math.max(0, columns[state.marker].values.indexOf(rows[i][state.marker]))];
/** Designs that are drawn: of very many evenly spread ones, and the frontier last, on top. */
function drawn() {
  const pick = list => list.filter(inView).filter((i, k, list) => !front.has(i) && (Math.imul(k, 2654435761) >>> 0) * list.length < data.most * 2 ** 32);
  return [...new Set([...pick(rows.map((_, i) => i).filter(i => !isActive.has(i))), ...pick(active), ...[...front.keys()].reverse().filter(inView)])];
}
function ticks(one, even, ends = [one.low, one.high]) {
  if (one.values && (even || one.text)) {
    const step = Math.ceil(one.values.length / 10);
    return one.values.filter((_, j) => j % step === 0).map(v => [place(one, v), one.ticks?.[v] ?? one.shown(v)]);
  }
  const low = ends[0] * one.scale, high = ends[1] * one.scale, rough = (high - low) / 5;
  if (!(rough > 0)) return [[0.5, one.shown(ends[0])]];
  if (one.log) {
    const powers = [], steps = high / low > 1000 ? [1] : [1, 2, 5];
    for (let p = 10 ** Math.floor(Math.log10(low)); p <= high; p *= 10) powers.push(...steps.map(m => m * p).filter(v => v >= low && v <= high));
    return powers.map(v => [place(one, v / one.scale, false, ends), Number(v.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 9 })]);
  }
  const ten = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(m => m * ten >= rough) * ten, found = [];
  const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6; v += step)
    found.push([(v - low) / (high - low), v.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })]);
  return found;
}
const cut = (text, n) => text.length > n ? `${text.slice(0, n - 1)}\u2026` : text;
/** Room of texts of a picture. */
const pen = document.createElement("canvas").getContext("2d");
const roomOf = font => text => { pen.font = font; return pen.measureText(text).width; };
const wide = roomOf("11px system-ui, sans-serif"), bold = roomOf("600 11px system-ui, sans-serif");
const meets = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

function scatter() {
  const [cx, cy] = [columns[state.x], columns[state.y]], box = $("scatter");
  const W = state.width || box.clientWidth || 600, H = Math.max(280, Math.min(state.width ? 380 : 420, W * 0.68)), m = { l: 66, r: 24, t: 14, b: 40 };
  if (!cx || !cy) return box.replaceChildren();
  const zoom = state.zoom ?? [[cx.low, cx.high], [cy.low, cy.high]], besideY = ticks(cy, false, zoom[1]).map(([t, text]) => [t, cut(text, 20)]);
  m.l = Math.max(m.l, 28 + Math.max(0, ...besideY.map(([, text]) => wide(text))));
  const inX = t => m.l + (W - m.l - m.r) * (0.04 + 0.92 * t), inY = t => H - m.b - (H - m.t - m.b) * (0.05 + 0.9 * t);
  const X = v => inX(place(cx, v, false, zoom[0])), Y = v => inY(place(cy, v, false, zoom[1]));
  const svg = make("svg", { width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${cy.title} over ${cx.title}` });
  let end = -Infinity;  // Of the last text under the picture: one that would meet it is left out.
  for (const [t, text] of ticks(cx, false, zoom[0]).map(([t, text]) => [t, cut(text, 20)])) {
    const x = inX(t), half = wide(text) / 2;
    svg.append(make("line", { class: "line", x1: x, x2: x, y1: m.t, y2: H - m.b }));
    if (x - half < end + 6) continue;
    end = x + half;
    svg.append(make("text", { class: "soft", x, y: H - m.b + 15, "text-anchor": "middle" }, text));
  }
  for (const [t, text] of besideY) {
    const y = inY(t);
    svg.append(make("line", { class: "line", x1: m.l, x2: W - m.r, y1: y, y2: y }), make("text", { class: "soft", x: m.l - 6, y: y + 4, "text-anchor": "end" }, text));
  }
  svg.append(make("text", { class: "name", x: (m.l + W - m.r) / 2, y: H - 6, "text-anchor": "middle" }, cx.title + (cx.log ? " (log)" : "")),
    make("text", { class: "name", transform: `translate(13 ${(m.t + H - m.b) / 2}) rotate(-90)`, "text-anchor": "middle" }, cy.title + (cy.log ? " (log)" : "")));
  const known = drawn().filter(hasPoint), spots = new Map(), others = [];
  for (const i of known) {
    const x = X(rows[i][state.x]), y = Y(rows[i][state.y]), lost = isActive.has(i) ? "" : " off";
    if (x < m.l || x > W - m.r || y < m.t || y > H - m.b) continue;
    others.push([x, y]);
    if (front.has(i) && !lost) spots.set(i, [x, y]);
    svg.append(make("path", { "data-i": i, d: shapeOf(i), transform: `translate(${x} ${y})`, fill: colourOf(i), class: `${front.has(i) && picture.rims ? "front" : ""}${lost}` }));
    if (unsold.has(i)) svg.append(make("path", { d: CROSS, transform: `translate(${x} ${y})`, class: `unsold${lost}` }));
  }
  const taken = [...spots.values()].map(([x, y]) => [x - 5, y - 5, x + 5, y + 5]);
  const covers = own => others.filter(([x, y]) => meets(own, [x - 4, y - 4, x + 4, y + 4])).length;
  let n = 0;
  for (const [i, text] of front) {
    if (!spots.has(i) || taken.length >= spots.size + data.most_labels) continue;
    const [x, y] = spots.get(i), w = wide(text) + 4, sides = [];
    for (const d of [8, 20, 34]) sides.push([-w / 2, -d], [d, 4], [-w / 2, d + 9], [-w - d, 4], [d, -d], [d, d + 9], [-w - d, -d], [-w - d, d + 9]);
    const free = sides.map(([a, b]) => [x + a, y + b - 10, x + a + w, y + b + 2]).filter(own => own[0] > m.l && own[2] < W && own[1] > 0 && own[3] < H - m.b && !taken.some(other => meets(own, other)));
    const own = free.find(one => !covers(one)) ?? (n < 3 ? free[0] : undefined);  // The first three are those that a reader looks for.
    n += 1;
    if (!own) continue;
    taken.push(own);
    const nearest = [Math.min(own[2], Math.max(own[0], x)), Math.min(own[3], Math.max(own[1], y))];
    svg.append(make("line", { class: "lead", x1: x, y1: y, x2: nearest[0], y2: nearest[1] }), make("text", { x: own[0], y: own[3] - 2 }, text));
  }
  zoomed(svg, cx, cy, zoom, (x, y) => [(x - m.l) / (W - m.l - m.r), (H - m.b - y) / (H - m.t - m.b)].map((t, k) => k ? (t - 0.05) / 0.9 : (t - 0.04) / 0.92));
  box.replaceChildren(svg);
  const names = front.size && picture.labels ? `; ${picture.labels}` : "";
  $("scatter-title").textContent = `${state.work < 0 ? "" : `${data.works[state.work]}: `}${cy.label} against ${cx.label}${names}`;
  $("beyond").textContent = state.all || !picture.beyond ? "" : `${picture.beyond}.`;
  $("near").hidden = !far.size || (!state.all && !state.zoom);
  $("all").hidden = state.all && !state.zoom;
}
/** Zoom into what a mouse drags over; touch scrolls the page. */
function zoomed(svg, cx, cy, zoom, places) {
  if (cx.text || cy.text) return;
  const mark = make("rect", { class: "brush" });
  let from = null;
  const spot = event => { const box = svg.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
  const ends = (a, b) => [0, 1].map(k => [Math.min(a[k], b[k]), Math.max(a[k], b[k])]);
  svg.addEventListener("pointerdown", event => {
    if (event.pointerType === "touch" || event.button) return;
    from = spot(event);
    svg.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  svg.addEventListener("pointermove", event => {
    if (!from) return;
    const [[x, right], [y, low]] = ends(from, spot(event));
    for (const [key, value] of Object.entries({ x, y, width: right - x, height: low - y })) mark.setAttribute(key, value);
    svg.append(mark);
  });
  svg.addEventListener("pointerup", event => {
    if (!from) return;
    const [[x, right], [y, low]] = ends(from, spot(event)), a = places(x, low), b = places(right, y);
    from = null;
    mark.remove();
    if (right - x < 6 || low - y < 6) return;
    state.zoom = [cx, cy].map((one, k) => [valueAt(one, a[k], zoom[k]), valueAt(one, b[k], zoom[k])]);
    scatter();
  });
}
/** Show all designs, or the frontier and its neighbourhood. */
function view(all) {
  state.all = all;
  state.zoom = null;
  state.brushes.clear();
  measure();
  filter();
  draw();
}
function legends() {
  const item = (shape, fill, text) => { const svg = make("svg", { viewBox: "-7 -7 14 14" }, make("path", { d: shape, fill })); return make("span", {}, svg, text); };
  const list = [], one = columns[state.colour], two = columns[state.marker];
  const there = k => { const found = new Set(rows.filter((_, i) => hasPoint(i) && inView(i)).map(row => row[k])); return ([, v]) => found.has(v); };
  if (one && one.values && one.values.length <= COLOURS.length) list.push(make("b", {}, `${one.label}:`), ...one.values.map((v, k) => item(SHAPES[0], COLOURS[k], one.shown(v))));
  else if (one) {
    const bar = make("i", { class: "ramp" }), ends = one.values ? [one.values[0], one.values.at(-1)] : [one.low, one.high];
    bar.style.background = `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(ramp).join()})`;
    list.push(make("b", {}, `${one.title}:`), make("span", {}, one.shown(ends[0]), bar, one.shown(ends[1])));
  }
  $("legend2").replaceChildren(...list.map(node => node.cloneNode(true)));
  if (list.length > 2) list.splice(1, list.length, ...list.slice(1).filter((_, k) => there(state.colour)([k, one.values[k]])));
  if (two) list.push(make("b", {}, `${two.label}:`), ...[...two.values.entries()].filter(there(state.marker)).map(([k, v]) => item(SHAPES[k], "currentColor", two.shown(v))));
  if (front.size) list.push(make("span", {}, make("b", {}, "frontier:"), picture.rims ? "rim and label" : "labels"));
  if ([...unsold].some(i => hasPoint(i) && inView(i))) {
    list.push(item(CROSS, "none", "no such server is priced, no rank"));
    list.at(-1).querySelector("path").setAttribute("class", "unsold");
  }
  $("legend").replaceChildren(...list);
}
const P = { t: 34, b: 14 };
/** Where the axes stand: as far apart as their headings and the values beside them need, and evenly if there is room. */
function parallelPlaces() {
  const heads = parallel.map(c => Math.max(bold(cut(columns[c].short, 16)), bold(columns[c].unit)) / 2);
  const values = parallel.map(c => Math.max(0, ...ticks(columns[c], true).map(([, text]) => wide(cut(text, 20)))));
  const found = [Math.max(20, (heads[0] ?? 0) + 2)], right = Math.max(20, (values.at(-1) ?? 0) + 10, (heads.at(-1) ?? 0) + 2);
  const needs = parallel.slice(1).map((_, k) => Math.max(50, values[k] + 16, heads[k] + heads[k + 1] + 8));
  const room = (state.width || $("parallel").clientWidth || 600) - found[0] - right, gap = room / Math.max(1, needs.length);
  const isEven = needs.every(need => need <= gap), more = Math.max(0, gap - needs.reduce((a, b) => a + b, 0) / Math.max(1, needs.length));
  for (const need of needs) found.push(found.at(-1) + (isEven ? gap : need + more));
  return { x: found, W: found.at(-1) + right };
}
/** Where a place of an axis stands: axes stand side by side, and where these have no room one below another. */
function frame() {
  const { x, W } = parallelPlaces(), room = $("parallel").clientWidth || 600;
  if (state.width || W <= room) return { isTall: false, W, H: 400, spot: (k, t) => [x[k], 400 - P.b - (400 - P.t - P.b) * t] };
  return { isTall: true, W: room, H: 62 * parallel.length + 4, spot: (k, t) => [P.b + (room - 2 * P.b) * t, 30 + 62 * k] };
}
function ways() {
  const { spot } = frame(), layer = $("parallel").querySelector("g");
  layer.replaceChildren(...drawn().map(i => {
    const d = parallel.map((c, k) => [k, place(columns[c], rows[i][c])]).filter(([, t]) => t !== null).map(([k, t], j) => `${j ? "L" : "M"}${spot(k, t).map(v => v.toFixed(1)).join()}`).join("");
    return make("path", { "data-i": i, class: `way${isActive.has(i) ? "" : " off"}${front.has(i) && picture.rims ? " front" : ""}`, d, stroke: colourOf(i) });
  }));
}
/** Name, unit and values of an axis that stands upright. */
function upright(one, k, spot) {
  const [x] = spot(k, 0), value = ([t, text]) => make("text", { x: x + 5, y: spot(k, t)[1] + 4, class: "soft" }, cut(text, 24));
  return [make("text", { class: "name", x, y: 12, "text-anchor": "middle" }, cut(one.short, 16), make("title", {}, one.label)),
    make("text", { class: "soft", x, y: 25, "text-anchor": "middle" }, one.unit), ...ticks(one, true).map(value)];
}
/** The same of one that lies: the name above it, values below it where they have room, its ends first. */
function lying(one, k, spot, W) {
  const y = spot(k, 0)[1], list = [make("text", { class: "name", x: P.b, y: y - 12 }, cut([one.label, one.unit].filter(Boolean).join(", "), 44))];
  const [first, ...others] = ticks(one, true), lines = one.text ? [[], [], []] : [[]];  // Texts are long: more lines.
  for (const [t, text] of [first, ...others.splice(-1), ...others].filter(Boolean)) {
    const short = cut(text, 24), half = wide(short) / 2, x = Math.min(W - half - 2, Math.max(half + 2, spot(k, t)[0]));
    const line = lines.findIndex(taken => taken.every(([a, b]) => x + half + 6 < a || x - half - 6 > b));
    if (line < 0) continue;
    lines[line].push([x - half, x + half]);
    list.push(make("text", { x, y: y + 16 + 11 * line, class: "soft", "text-anchor": "middle" }, short));
  }
  return list;
}
function axes() {
  const box = $("parallel"), { isTall, W, H, spot } = frame();
  const svg = make("svg", { width: state.width || W, height: H, viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "Parallel coordinates", class: isTall ? "tall" : "" }, make("g"));
  parallel.forEach((c, k) => {
    const [x1, y1] = spot(k, 0), [x2, y2] = spot(k, 1), one = columns[c], brush = make("rect", { class: "brush" });
    svg.append(make("line", { class: "axis", x1, x2, y1, y2 }), ...(isTall ? lying(one, k, spot, W) : upright(one, k, spot)));
    const size = (x, y, width, height) => ({ x, y, width, height });
    const strip = make("rect", { class: "strip", ...(isTall ? size(x1 - 8, y1 - 16, x2 - x1 + 16, 32) : size(x1 - 16, y2 - 8, 32, y1 - y2 + 16)) });
    const show = () => {
      const r = state.brushes.get(c), [low, high] = (r ?? [0, 0]).map(t => spot(k, t));
      const area = isTall ? size(low[0], y1 - 8, high[0] - low[0], 16) : size(x1 - 8, high[1], 16, low[1] - high[1]);
      for (const [name, v] of Object.entries(area)) brush.setAttribute(name, v);
    };
    let from = null;
    const at = event => {
      const seen = svg.getBoundingClientRect(), x = (event.clientX - seen.left) * W / seen.width, y = (event.clientY - seen.top) * H / seen.height;
      return Math.min(1, Math.max(0, isTall ? (x - x1) / (x2 - x1) : (y1 - y) / (y1 - y2)));
    };
    strip.addEventListener("pointerdown", event => { from = at(event); strip.setPointerCapture(event.pointerId); });
    strip.addEventListener("pointermove", event => {
      if (from === null) return;
      const to = at(event);
      state.brushes.set(c, [Math.min(from, to), Math.max(from, to)]);
      show(); filter();
    });
    strip.addEventListener("pointerup", event => { if (Math.abs(at(event) - from) < 0.01) state.brushes.delete(c); from = null; show(); filter(); });
    svg.append(brush, strip);
    show();
  });
  box.replaceChildren(svg);
  ways();
}
function table() {
  const own = active.filter(ofWork), one = columns[state.sort], body = $("designs").tBodies[0], k = state.sort, sign = state.down ? -1 : 1;
  const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  const sorted = one ? [...own].sort((a, b) => {
    const x = rows[a][k], y = rows[b][k];
    return x === null || y === null ? (x === null) - (y === null) : sign * compare(x, y);
  }) : [...own].sort((a, b) => hasPoint(b) - hasPoint(a));
  [...$("designs").tHead.rows[0].cells].forEach((head, j) => {
    if (order[j] === k) head.setAttribute("aria-sort", state.down ? "descending" : "ascending"); else head.removeAttribute("aria-sort");
  });
  body.replaceChildren(...sorted.slice(0, state.n).map(i => make("tr", { "data-i": i, class: best.has(i) ? "best" : unsold.has(i) ? "unsold" : "" }, ...order.map((j, first) => {
    const c = columns[j], text = c.shown(rows[i][j]), cell = make(first ? "td" : "th", { class: `${c.text ? "text" : "number"}${c.dull ? " dull" : ""}` }, cut(text, 60));
    if (text.length > 20) cell.title = text;
    return cell;
  }))));
  const n = rows.filter((_, i) => ofWork(i)).length, few = drawn().length, seen = rows.filter((_, i) => inView(i)).length;
  $("count").textContent = `${state.lost ? `not understood: ${state.lost}; ` : ""}${own.length.toLocaleString("en-US")} of ${n.toLocaleString("en-US")} designs${!own.length && active.length ? ` of this work; ${active.length.toLocaleString("en-US")} of others` : ""}`;
  $("more").hidden = own.length <= state.n;
  $("note").textContent = [best.size ? data.each.length ? "Bold rows are on the frontier of their work." : "Bold rows are on the frontier." : "", own.some(i => unsold.has(i)) ? "Of rows with an x no such server is priced: they have no rank." : "", few < seen ? `The pictures draw ${few.toLocaleString("en-US")} of ${seen.toLocaleString("en-US")} designs: the frontier, and others evenly spread.` : "",
    own.length > state.n ? `The table shows the first ${state.n.toLocaleString("en-US")}.` : ""].filter(Boolean).join(" ");
  $("note").classList.toggle("cut", own.length > 60);
}
let waiting = 0;
function filter() {
  const ranges = [...state.brushes];
  active = rows.map((_, i) => i).filter(i => state.words.every(word => words[i].includes(word)) && state.rules.every(rule => meetsRule(rows[i][rule[0]], rule))
    && ranges.every(([c, [low, high]]) => { const t = place(columns[c], rows[i][c]); return t !== null && t >= low && t <= high; }));
  isActive = new Set(active);
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => { scatter(); ways(); table(); });
}
function draw() { legends(); scatter(); axes(); table(); }
function choices(id, names, none) {
  const list = names.map(k => make("option", { value: k }, columns[k].label));
  $(id).append(...(none ? [make("option", { value: -1 }, "none")] : []), ...list);
  $(id).value = state[id];
  $(id).addEventListener("change", event => { state[id] = Number(event.target.value); state.zoom = null; draw(); });
}
measure();
if (state.x < 0 || state.y < 0) [state.x, state.y] = [1, 0].map(j => parallel.filter(k => !columns[k].text).at(j) ?? parallel[0] ?? -1);
state.sort = at(data.y);
const all = columns.map((_, k) => k);
/** Columns of the table: on a narrow screen what ranks stands behind the first, before all that scrolls. */
const order = innerWidth < 600 ? [...new Set([0, at(data.y), at(data.x), ...all])].filter(k => k >= 0) : all;
const figures = all.filter(k => columns[k].axis || !columns[k].text);
if (data.works.length > 1) {
  $("of-work").hidden = false;
  $("work").append(...data.works.map((name, k) => make("option", { value: k }, name)), make("option", { value: -1 }, "all: times do not compare"));
  $("work").addEventListener("change", event => { choose(Number(event.target.value)); for (const id of ["colour", "marker"]) $(id).value = state[id]; view(state.all); });
}
choices("x", figures); choices("y", figures); choices("colour", all.filter(k => columns[k].axis || !columns[k].text && k), true);
choices("marker", all.filter(k => columns[k].axis && columns[k].values?.length <= SHAPES.length), true);
order.forEach(k => {
  const one = columns[k], button = make("button", { type: "button" }, one.title);
  button.addEventListener("click", () => { state.down = state.sort === k ? !state.down : one.most; state.sort = k; table(); });
  $("designs").tHead.rows[0].append(make("th", { scope: "col", class: `${one.text ? "" : "number"}${one.dull ? " dull" : ""}` }, button));
});
const values = columns.map((_, k) => [...new Set(rows.map(row => row[k]).filter(v => v !== null))]);
const same = columns.flatMap((one, k) => one.dull && values[k].length === 1 ? [`${one.label} ${one.shown(values[k][0])} ${one.unit}`.trim()] : []);
$("same").textContent = rows.length > 1 && same.length ? `In all rows: ${same.join(", ")}.` : "";
$("filter").addEventListener("input", event => { ask(event.target.value); filter(); });
$("clear").addEventListener("click", () => { $("filter").value = ""; ask(""); state.brushes.clear(); filter(); axes(); });
$("near").addEventListener("click", () => view(false));
$("all").addEventListener("click", () => view(true));
$("more").addEventListener("click", () => { state.n += 1000; table(); });
document.addEventListener("pointerover", event => {
  document.querySelectorAll(".hot").forEach(node => node.classList.remove("hot"));
  const i = event.target.closest?.("[data-i]")?.dataset.i, tip = $("tip");
  tip.hidden = i === undefined || event.target.closest("table") !== null;
  if (i === undefined) return;
  document.querySelectorAll(`.picture [data-i="${i}"]`).forEach(node => node.classList.add("hot"));
  tip.replaceChildren(...columns.filter((one, k) => rows[i][k] !== null).map(one => make("div", {}, make("b", {}, one.label), ` ${cut(one.shown(rows[i][columns.indexOf(one)]), 40)} ${one.unit}`)));
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8))}px`;
});
addEventListener("resize", draw);
addEventListener("beforeprint", () => { state.width = 690; draw(); });
addEventListener("afterprint", () => { state.width = 0; draw(); });
draw();

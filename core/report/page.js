// SPDX-License-Identifier: Apache-2.0
// Curves of a run's report: draws the series in #data, answers the pointer, switches to log scales.
'use strict';
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#666666'];
const WIDTH = 560, HEIGHT = 260, LEFT = 62, RIGHT = 12, TOP = 10, BOTTOM = 26;
const data = JSON.parse(document.getElementById('data').textContent);

function element(name, attributes, parent) {
  const svg = ['svg', 'path', 'line', 'text', 'circle', 'g', 'rect'].includes(name);
  const made = svg ? document.createElementNS('http://www.w3.org/2000/svg', name)
                   : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  if (parent) parent.appendChild(made);
  return made;
}

function number(x) {
  if (x === null) return 'not a number';
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return x.toExponential(3).replace(/\.?0+e/, 'e');
  return String(Number(x.toPrecision(5)));
}

// Round steps of 1, 2 or 5 times a power of ten between two ends.
function ticks(low, high, wanted) {
  const raw = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((x) => x * power).find((x) => x >= raw);
  const all = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9; x += step) all.push(x);
  return all;
}

function logTicks(low, high) {  // low, high: powers
  const whole = [];
  for (let x = Math.ceil(low); x <= Math.floor(high); ++x) whole.push(x);
  return whole.length > 1 ? whole : ticks(low, high, 4);
}

class Chart {
  constructor(panel, parent) {
    this.panel = panel;
    this.log = false;
    const box = element('div', {class: 'chart'}, parent);
    const head = element('header', {}, box);
    element('b', {}, head).textContent = panel.title;
    const label = element('label', {}, head);
    const positive = panel.series.every((s) => s.y.every((v) => v === null || v > 0));
    if (positive) {
      const box = element('input', {type: 'checkbox'}, label);
      label.append(' log scale');
      box.addEventListener('change', () => { this.log = box.checked; this.draw(); });
    }
    this.svg = element('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`}, box);
    this.key = element('div', {class: 'key'}, box);
    this.svg.addEventListener('pointermove', (event) => this.point(event));
    this.svg.addEventListener('pointerleave', () => this.point(null));
    this.draw();
  }

  measure() {
    let x = [Infinity, -Infinity], y = [Infinity, -Infinity];
    for (const s of this.panel.series) {
      for (let k = 0; k < s.x.length; ++k) {
        x = [Math.min(x[0], s.x[k]), Math.max(x[1], s.x[k])];
        if (s.y[k] === null) continue;
        const v = this.scaled(s.y[k]);
        y = [Math.min(y[0], v), Math.max(y[1], v)];
      }
    }
    if (!(y[1] >= y[0])) y = [0, 1];
    if (x[1] <= x[0]) x = [x[0] - 1, x[0] + 1];
    const room = (y[1] - y[0]) * 0.05 || Math.abs(y[0]) * 0.1 || 1;
    this.x = x;
    this.y = [y[0] - room, y[1] + room];
  }

  scaled(value) { return this.log ? Math.log10(value) : value; }
  px(x) { return LEFT + (x - this.x[0]) / (this.x[1] - this.x[0]) * (WIDTH - LEFT - RIGHT); }
  py(v) {
    return HEIGHT - BOTTOM - (v - this.y[0]) / (this.y[1] - this.y[0]) * (HEIGHT - TOP - BOTTOM);
  }

  draw() {
    this.measure();
    this.svg.replaceChildren();
    for (const v of this.log ? logTicks(...this.y) : ticks(...this.y, 5)) {
      const y = this.py(v);
      element('line', {class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y}, this.svg);
      const text = element('text', {x: LEFT - 6, y: y + 4, 'text-anchor': 'end'}, this.svg);
      text.textContent = number(this.log ? 10 ** v : v);
    }
    for (const x of ticks(...this.x, 6).filter((x) => Number.isInteger(x))) {
      const at = {x: this.px(x), y: HEIGHT - 8, 'text-anchor': 'middle'};
      element('text', at, this.svg).textContent = x;
    }
    this.panel.series.forEach((s, k) => this.line(s, COLOURS[k % COLOURS.length]));
    this.marks = element('g', {}, this.svg);
    this.legend(null);
  }

  // A value that is not finite leaves a gap.
  line(series, colour) {
    let path = '', pen = false, alone = [];
    for (let k = 0; k < series.x.length; ++k) {
      if (series.y[k] === null) { pen = false; continue; }
      const x = this.px(series.x[k]), y = this.py(this.scaled(series.y[k]));
      path += `${pen ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`;
      const next = k + 1 < series.x.length && series.y[k + 1] !== null;
      if (!pen && !next) alone.push([x, y]);
      pen = true;
    }
    element('path', {d: path, fill: 'none', stroke: colour, 'stroke-width': 1.6}, this.svg);
    for (const [cx, cy] of alone) element('circle', {cx, cy, r: 2.5, fill: colour}, this.svg);
  }

  legend(values) {
    this.key.replaceChildren();
    if (values) this.key.append(`step ${values.step}`);
    this.panel.series.forEach((s, k) => {
      element('i', {style: `background:${COLOURS[k % COLOURS.length]}`}, this.key);
      const value = values ? values.y[k] : undefined;
      this.key.append(s.name + (value === undefined ? '' : ` ${number(value)}`));
    });
  }

  point(event) {
    this.marks.replaceChildren();
    if (!event) { this.legend(null); return; }
    const frame = this.svg.getBoundingClientRect();
    const along = ((event.clientX - frame.left) / frame.width * WIDTH - LEFT) /
                  (WIDTH - LEFT - RIGHT);
    const wanted = this.x[0] + along * (this.x[1] - this.x[0]);
    let step = null;
    for (const s of this.panel.series) {
      for (const x of s.x) {
        if (step === null || Math.abs(x - wanted) < Math.abs(step - wanted)) step = x;
      }
    }
    if (step === null) return;
    const x = this.px(step);
    element('line', {class: 'cross', x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM}, this.marks);
    const y = this.panel.series.map((s, k) => {
      const at = s.x.indexOf(step);
      if (at < 0) return undefined;
      if (s.y[at] !== null) {
        element('circle', {cx: x, cy: this.py(this.scaled(s.y[at])), r: 3.5,
                           fill: COLOURS[k % COLOURS.length]}, this.marks);
      }
      return s.y[at];
    });
    this.legend({step, y});
  }
}

for (const panel of data.panels) new Chart(panel, document.getElementById('charts'));

// The timeline is stretched in time, not in height.
const zoom = document.getElementById('zoom');
if (zoom) {
  const svg = document.querySelector('#timeline svg'), spans = svg.querySelector('.spans');
  const width = svg.width.baseVal.value, height = svg.height.baseVal.value;
  const left = Number(spans.dataset.left);
  zoom.addEventListener('input', () => {
    const factor = 2 ** Number(zoom.value), wide = left + (width - left) * factor;
    spans.setAttribute('transform', `translate(${left} 0) scale(${factor} 1) translate(${-left} 0)`);
    svg.setAttribute('width', wide);
    svg.setAttribute('viewBox', `0 0 ${wide} ${height}`);
  });
}

/* The window over time: one column a request, stacked by kind, with decisions as marks and the cost of each request below.
   Draws SVG and nothing else; no inline style attribute, no markup from text. The report of a replay inlines this file.

   laminaChart(root, data, options) -> {select, extend, highlight, floor, axis, zoom, at}
   data: {tokens[], kinds{name: []}, cost[[read, written, output]], units: cost is units, not microdollars, turn[], start, time[] in seconds, pause[], window, threshold, limit, summary,
          decisions[{request, label, icon, unsure}], columns?[names on the axis]};
   options: {start, word(key, values), label(i), onSelect(i), onHover(i), amount?(value)} */
(function () {
  'use strict';
  const NS = 'http://www.w3.org/2000/svg';
  const make = (name, attributes, parent) => {
    const node = document.createElementNS(NS, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    parent?.append(node);
    return node;
  };
  const short = value => value >= 1e6 ? (value / 1e6).toFixed(1) + 'M' : value >= 1e3 ? Math.round(value / 1e3) + 'k' : String(Math.round(value));
  const round = (most, steps) => { const raw = most / steps, power = 10 ** Math.floor(Math.log10(raw)); return Math.max(1, [1, 2, 2.5, 5, 10].find(one => one * power >= raw) * power); };
  const sum = one => (one[0] || 0) + (one[1] || 0) + (one[2] || 0);
  const MANY = 300, PAUSE = 15;

  window.laminaChart = function (root, data, options) {
    const word = options.word;
    let at = Math.max(0, options.start || 0), hover = null, ground = null, byTime = false, from = 0, to = data.tokens.length, width = 0, drawn = {};
    root.textContent = '';
    const lane = document.createElement('div'); lane.className = 'lane';
    const svg = make('svg', { class: 'w', role: 'img', 'aria-label': data.summary });
    const slider = (name, label) => { const input = document.createElement('input'); input.type = 'range'; input.className = name; input.step = 1; input.setAttribute('aria-label', label); return input; };
    const scrub = slider('scrub', word('slider'));
    const range = document.createElement('div'); range.className = 'range'; range.hidden = true;
    const begin = slider('', word('range_start')), end = slider('', word('range_end')); range.append(begin, end);
    root.append(lane, svg, scrub, range);
    let marks = [];

    const count = () => data.tokens.length;
    const stamp = i => (data.start + data.time[i]) * 1000;
    function markAll() {
      lane.textContent = '';
      marks = data.decisions.map(one => {
        const button = document.createElement('button'), text = document.createElement('span');
        button.type = 'button'; button.className = one.unsure ? 'mark unsure' : 'mark'; text.textContent = one.label;
        const name = word('before', { label: one.label, n: one.request }); button.title = name; button.setAttribute('aria-label', name);
        make('path', { d: one.icon }, make('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true', class: 'icon' }, button));
        button.append(text); button.addEventListener('click', () => select(one.request - 1)); lane.append(button);
        return { at: one.request - 1, button };
      });
    }

    function draw() {
      width = root.clientWidth;
      if (width < 120 || !count()) return;
      to = Math.min(Math.max(to, from + 1), count());
      const pad = parseFloat(getComputedStyle(root).paddingLeft), narrow = width < 560, L = 40, R = narrow ? 4 : 10, W = width - L - R - pad;
      const H = narrow ? 190 : 264, costTop = H + 30, costH = narrow ? 34 : 42, total = costTop + costH + 20, N = to - from;
      svg.setAttribute('viewBox', `0 0 ${L + W + R} ${total}`); svg.setAttribute('height', total); svg.textContent = ''; svg.classList.toggle('timed', byTime);
      const shown = data.tokens.slice(from, to);
      let peak = 1; for (const value of shown) if (value > peak) peak = value;
      const limit = data.threshold, top = Math.max(peak, limit && peak > .6 * limit ? limit : 0) * 1.06;
      const t0 = stamp(from), span = Math.max(1, stamp(to - 1) - t0), timed = byTime && t0 > 0;
      /* By time a column is as wide as a request, and stands where its time is. */
      const cw = timed ? Math.max(1.5, Math.min(6, W / N)) : W / N;
      const x = timed ? i => L + (stamp(Math.min(i, to - 1)) - t0) / span * (W - cw) : i => L + (i - from) * cw;
      const y = value => H - value / top * H;
      drawn = { x, cw, L, W, H, bottom: costTop + costH, timed };
      const step = round(top, narrow ? 3 : 4);
      for (let value = 0; value <= top; value += step) {
        make('line', { class: value ? 'grid' : 'axis', x1: L, x2: L + W, y1: y(value), y2: y(value) }, svg);
        make('text', { x: L - 6, y: y(value) + 4, 'text-anchor': 'end' }, svg).textContent = (options.amount || short)(value);
      }
      /* More requests than pixels: the fullest of each pixel column stands for it. */
      const columns = [];
      if (timed || N <= W) for (let i = from; i < to; i++) columns.push([x(i), timed ? x(i) + cw : x(i + 1), i]);
      else for (let c = 0; c < Math.floor(W); c++) {
        const a = from + Math.floor(c * N / Math.floor(W)), b = Math.max(a + 1, from + Math.floor((c + 1) * N / Math.floor(W)));
        let best = a; for (let i = a; i < b; i++) if (data.tokens[i] > data.tokens[best]) best = i;
        columns.push([L + c * W / Math.floor(W), L + (c + 1) * W / Math.floor(W), best]);
      }
      const names = Object.keys(data.kinds), order = ground && names.includes(ground) ? [ground, ...names.filter(one => one !== ground)] : names;
      const low = new Float64Array(columns.length);
      for (const name of order) {
        const values = data.kinds[name]; let path = '', back = '';
        if (timed) columns.forEach(([a, b, i], c) => { if (values[i]) path += `M${a.toFixed(1)} ${y(low[c]).toFixed(1)}V${y(low[c] + values[i]).toFixed(1)}H${b.toFixed(1)}V${y(low[c]).toFixed(1)}Z`; });
        else {
          let any = 0;
          columns.forEach(([a, b, i], c) => { any += values[i]; path += (c ? 'L' : 'M') + a.toFixed(1) + ' ' + y(low[c] + values[i]).toFixed(1) + 'H' + b.toFixed(1); back = 'L' + b.toFixed(1) + ' ' + y(low[c]).toFixed(1) + 'H' + a.toFixed(1) + back; });
          path = any ? path + back + 'Z' : '';
        }
        columns.forEach(([, , i], c) => { low[c] += values[i]; });
        if (path) make('path', { class: `area k-${name}`, 'data-area': name, d: path }, svg);
      }
      if (limit && limit <= top) {
        make('line', { class: 'limit', x1: L, x2: L + W, y1: y(limit), y2: y(limit) }, svg);
        make('text', { class: 'limit-text', x: L + W, y: y(limit) - 5, 'text-anchor': 'end' }, svg).textContent = data.limit;
      }
      const visible = marks.filter(one => one.at >= from && one.at < to);
      for (const one of visible) make('line', { class: 'cut', x1: x(one.at), x2: x(one.at), y1: -4, y2: H }, svg);
      /* The cost of each request on the same axis. */
      let most = 0; for (let i = from; i < to; i++) most = Math.max(most, sum(data.cost[i]));
      if (most) {
        make('text', { x: L - 6, y: costTop + 9, 'text-anchor': 'end' }, svg).textContent = data.units ? short(most) : '$' + (most / 1e6).toFixed(2);
        const gap = cw > 3 && !timed ? .8 : 0;
        for (const [name, parts] of [['output', 3], ['written', 2], ['read', 1]]) {
          let path = '';
          for (const [a, b, i] of columns) { const h = data.cost[i].slice(0, parts).reduce((all, one) => all + (one || 0), 0) / most * costH; if (h) path += `M${a.toFixed(1)} ${costTop + costH}v${(-h).toFixed(1)}H${(b - gap).toFixed(1)}V${costTop + costH}Z`; }
          make('path', { class: 'c-' + name, d: path }, svg);
        }
      }
      make('text', { x: L - 6, y: costTop + costH, 'text-anchor': 'end' }, svg).textContent = '0';
      make('line', { class: 'axis', x1: L, x2: L + W, y1: costTop + costH, y2: costTop + costH }, svg);
      /* Turns as ticks, long pauses by name. */
      let turn = -1, last = -99, ticks = '';
      for (let i = from; i < to; i++) {
        if (data.turn[i] !== turn) { turn = data.turn[i]; ticks += `M${x(i).toFixed(1)} ${H}v6`; }
        if (data.pause[i] >= PAUSE && i > from && x(i) - last > 84) { last = x(i); make('text', { x: Math.min(last, L + W - 42), y: H + 18, 'text-anchor': 'middle' }, svg).textContent = word('pause', { n: data.pause[i] }); }
      }
      make('path', { class: 'turn', d: ticks }, svg);
      const each = round(N, narrow ? 3 : 8), label = (i, text) => { make('text', { x: timed ? x(i) : x(i + .5), y: total - 4, 'text-anchor': 'middle' }, svg).textContent = text; };
      if (timed) for (let part = 0; part <= 4; part++) {
        const place = L + part / 4 * W, clock = new Date(t0 + part / 4 * span);
        make('text', { x: place, y: total - 4, 'text-anchor': part === 4 ? 'end' : part ? 'middle' : 'start' }, svg).textContent = clock.toLocaleString(document.documentElement.lang, { hour: '2-digit', minute: '2-digit', hour12: false, ...(span > 864e5 && { day: 'numeric', month: 'short' }) });
      } else {
        for (let value = Math.ceil((from + 1) / each) * each; value <= to; value += each) if (x(value - .5) - L > 70) label(value - 1, data.columns ? data.columns[value - 1] : value);
        make('text', { x: L, y: total - 4 }, svg).textContent = data.columns ? data.columns[from] : narrow ? from + 1 : word('request_one', { n: from + 1 });
      }
      drawn.column = make('rect', { class: 'chosen', y: 0, height: costTop + costH }, svg);
      drawn.line = make('line', { class: 'chosen-line', y1: -4, y2: costTop + costH }, svg);
      drawn.hover = make('line', { class: 'hover', y1: 0, y2: costTop + costH, visibility: 'hidden' }, svg);
      drawn.drag = make('rect', { class: 'chosen', y: 0, height: H, visibility: 'hidden' }, svg);
      pointer(make('rect', { class: 'hit', x: L, y: 0, width: W, height: costTop + costH }, svg));
      Object.assign(scrub, { min: 1, max: count(), value: at + 1 });
      scrub.style.left = pad + L + 'px'; scrub.style.width = W + 'px';
      range.hidden = count() <= MANY; range.style.marginLeft = L + 'px'; range.style.width = W + 'px';
      Object.assign(begin, { min: 1, max: count(), value: from + 1 }); Object.assign(end, { min: 1, max: count(), value: to });
      /* Marks whose labels would overlap are icons. */
      for (const one of marks) { one.button.hidden = !visible.includes(one); one.button.classList.remove('short'); one.shift = 0; }
      /* Several before one request stand side by side. */
      visible.forEach((one, n) => { const before = visible[n - 1]; if (before?.at === one.at) { one.shift = before.shift + 28; before.button.classList.add('short'); one.button.classList.add('short'); } one.button.style.left = x(one.at) + one.shift + 'px'; });
      visible.forEach((one, n) => { const next = visible[n + 1], edge = one.button.offsetLeft + one.button.offsetWidth / 2; if (narrow || next && edge + 6 > next.button.offsetLeft - next.button.offsetWidth / 2 || edge > L + W + R) one.button.classList.add('short'); });
      place();
    }

    function pointer(hit) {
      const index = event => {
        const place = event.clientX - svg.getBoundingClientRect().left;
        if (!drawn.timed) return Math.max(from, Math.min(to - 1, from + Math.floor((place - drawn.L) / drawn.W * (to - from))));
        let best = from; for (let i = from; i < to; i++) if (Math.abs(drawn.x(i) - place) < Math.abs(drawn.x(best) - place)) best = i;
        return best;
      };
      let start = null, moved = false;
      hit.addEventListener('pointerdown', event => { start = index(event); moved = false; });
      hit.addEventListener('pointermove', event => {
        const i = index(event);
        if (event.pointerType === 'touch') { if (event.buttons) select(i); return; }
        if (event.buttons && start !== null && Math.abs(i - start) > 1) {
          moved = true; const a = drawn.x(Math.min(start, i)), b = drawn.x(Math.max(start, i) + (drawn.timed ? 0 : 1));
          drawn.drag.setAttribute('visibility', 'visible'); drawn.drag.setAttribute('x', a); drawn.drag.setAttribute('width', Math.max(1, b - a));
        }
        over(i);
      });
      hit.addEventListener('pointerup', event => { if (moved) zoom(Math.min(start, index(event)), Math.max(start, index(event)) + 1); else select(index(event)); start = null; });
      hit.addEventListener('pointerleave', () => { over(null); drawn.drag.setAttribute('visibility', 'hidden'); });
    }

    function place() {
      if (!drawn.x) return;
      const inside = at >= from && at < to, middle = i => drawn.timed ? drawn.x(i) + drawn.cw / 2 : drawn.x(i + .5);
      for (const node of [drawn.column, drawn.line]) node.setAttribute('visibility', inside ? 'visible' : 'hidden');
      if (inside) { drawn.column.setAttribute('x', drawn.x(at)); drawn.column.setAttribute('width', Math.max(2, drawn.cw)); drawn.line.setAttribute('x1', middle(at)); drawn.line.setAttribute('x2', middle(at)); }
      drawn.hover.setAttribute('visibility', hover === null ? 'hidden' : 'visible');
      if (hover !== null) { drawn.hover.setAttribute('x1', middle(hover)); drawn.hover.setAttribute('x2', middle(hover)); }
      for (const one of marks) one.button.setAttribute('aria-pressed', one.at === at);
    }
    function over(i) { if (i === hover) return; hover = i; place(); options.onHover(i === null ? at : i); }
    function select(i, quiet) {
      at = Math.max(0, Math.min(count() - 1, i));
      if (at < from || at >= to) { const half = (to - from) >> 1; from = Math.max(0, at - half); to = Math.min(count(), from + 2 * half + 1); draw(); }
      scrub.value = at + 1; scrub.setAttribute('aria-valuetext', options.label(at)); place(); options.onHover(at);
      if (!quiet) options.onSelect(at);
    }
    function zoom(a, b) { from = Math.max(0, Math.min(a, count() - 1)); to = Math.min(count(), Math.max(b, from + 1)); draw(); }
    function scale(by) { const half = Math.max(4, Math.round((to - from) * by / 2)); zoom(at - half, at + half); }
    scrub.addEventListener('input', () => select(scrub.value - 1));
    begin.addEventListener('input', () => zoom(begin.value - 1, Math.max(to, +begin.value)));
    end.addEventListener('input', () => zoom(Math.min(from, end.value - 1), +end.value));
    /* Keys work on the slider and anywhere on the page outside of fields. */
    const nextMark = by => { const places = marks.map(one => one.at).filter(one => by < 0 ? one < at : one > at); if (places.length) select(by < 0 ? places.at(-1) : places[0]); };
    const nextTurn = by => { let i = at; while (data.turn[i + by] !== undefined && data.turn[i + by] === data.turn[at]) i += by; select(i + by); };
    function key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (event.target !== scrub && event.target.closest('input,textarea,select,dialog,[contenteditable]')) return;
      if (event.key.length === 1 && localStorage.getItem('lamina-keys') === 'off') return;
      const act = { '[': () => nextMark(-1), ']': () => nextMark(1), '0': () => zoom(0, count()), '+': () => scale(.5), '-': () => scale(2),
        ArrowLeft: () => event.shiftKey ? nextTurn(-1) : select(at - 1), ArrowRight: () => event.shiftKey ? nextTurn(1) : select(at + 1), Home: () => select(0), End: () => select(count() - 1) }[event.key];
      if (act) { event.preventDefault(); act(); }
    }
    document.addEventListener('keydown', key);
    const size = new ResizeObserver(() => { if (root.clientWidth !== width) draw(); }); size.observe(root);
    markAll(); draw(); select(at, true);
    return {
      select, zoom, get at() { return at; },
      axis(mode) { byTime = mode === 'time'; draw(); },
      highlight(name) { svg.classList.toggle('dim', name !== null); for (const node of svg.querySelectorAll('[data-area]')) node.classList.toggle('on', node.dataset.area === name); },
      floor(name) { ground = name; draw(); },
      /* The data has grown in place, or is new: whoever looked at the end keeps looking at it. */
      extend(fresh) { const all = to === count() || to >= data.tokens.length; data = fresh; if (all || to > count()) to = count(); from = Math.min(from, Math.max(0, count() - 1)); svg.setAttribute('aria-label', data.summary); markAll(); draw(); select(Math.min(at, count() - 1), true); },
      close() { document.removeEventListener('keydown', key); size.disconnect(); }
    };
  };
})();

/* The window over time: a column for each request, stacked by kind, decisions (the server's buttons) as marks, costs below. The data is that
   of session_data.columns, with `columns` for names on the axis. A range excludes its end. */
const page = document.documentElement, SVG = 'http://www.w3.org/2000/svg', HTML = page.namespaceURI;
const MANY = 300, PAUSE = 15, LEFT = 40, ROWS = 4;
const set = (node, attributes) => { for (const key in attributes) node.setAttribute(key, attributes[key]); return node; };
const make = (name, attributes, parent, space = SVG) => parent.appendChild(set(document.createElementNS(space, name), attributes));
const short = value => value.toLocaleString('en', { notation: 'compact' }).replace('K', 'k');
const sum = parts => parts.reduce((all, one) => all + (one || 0), 0);
const bound = (value, least, most) => Math.max(least, Math.min(value, most));
/* A round step, so that about so many fit. */
const round = (most, steps) => { const raw = most / steps, power = 10 ** Math.floor(Math.log10(raw)); return Math.ceil([1, 2, 2.5, 5, 10].find(one => one * power >= raw) * power); };

window.laminaChart = (root, data, { start, word, onSelect, onHover, onZoom, range = [0, Infinity], amount = short }) => {
	const count = () => data.tokens.length, stamp = i => (data.start + data.time[i]) * 1000;
	let at = start, hover = null, ground = null, byTime = false, from, to, width = 0, marks = [], drawn;
	root.textContent = '';
	const slider = (name, parent) => make('input', { type: 'range', class: name, 'aria-label': word(name) }, parent, HTML);
	const svg = make('svg', { role: 'img' }, root), scrub = slider('scrub', root);
	const ends = make('div', { class: 'range' }, root, HTML), begin = slider('range_start', ends), end = slider('range_end', ends);

	function draw() {
		width = root.clientWidth;
		if (width < 120 || !count()) return;
		marks = [...document.querySelectorAll('.mark')].map(one => Object.assign(one, { at: one.dataset.select - 1 }));
		const narrow = width < 560, right = width - (narrow ? 4 : 10), W = right - LEFT;
		const H = narrow ? 190 : 264, costTop = H + 30, costH = narrow ? 34 : 42, bottom = costTop + costH, total = bottom + 20;
		const line = (name, x1, y1, x2, y2) => make('line', { class: name, x1, y1, x2, y2 }, svg);
		const text = (x, y, string, anchor = 'middle', name = '') => { make('text', { class: name, x, y, 'text-anchor': anchor }, svg).textContent = string; };
		svg.textContent = '';
		set(svg, { viewBox: `0 0 ${width} ${total}`, height: total, 'aria-label': data.summary, class: byTime ? 'timed' : '' });

		let peak = 1, most = 0;
		for (let i = from; i < to; i++) { peak = Math.max(peak, data.tokens[i]); most = Math.max(most, sum(data.cost[i])); }
		const limit = data.threshold, top = Math.max(peak, limit && peak > .6 * limit ? limit : 0) * 1.06, y = value => H - value / top * H;
		const t0 = stamp(from), span = Math.max(1, stamp(to - 1) - t0), timed = byTime && t0 > 0;
		const x = i => i >= to ? right : timed ? LEFT + (stamp(i) - t0) / span * (W - 6) : LEFT + (i - from) / (to - from) * W;
		const ending = i => timed ? Math.min(x(i + 1), x(i) + 6) : x(i + 1), middle = i => (x(i) + ending(i)) / 2;
		const step = round(top, narrow ? 3 : 4);
		for (let value = 0; value <= top; value += step) {
			line(value ? 'grid' : 'axis', LEFT, y(value), right, y(value));
			text(LEFT - 6, y(value) + 4, amount(value), 'end');
		}
		/* More requests than pixels: the fullest of each pixel column stands for it. */
		const columns = [];
		for (let i = from; i < to; i++) {
			const last = columns.at(-1);
			if (!last || x(i) - last.a >= 1) columns.push({ a: x(i), i });
			else if (data.tokens[i] > data.tokens[last.i]) last.i = i;
		}
		columns.forEach((one, n) => { const next = columns[n + 1]?.a ?? right; one.b = timed ? Math.min(next, one.a + 6) : next; one.last = one.b < next || !columns[n + 1]; one.low = 0; });
		const px = value => value.toFixed(1);
		/* A layer is a step line and its way back along the layer below; a pause cuts it. */
		for (const name of Object.keys(data.kinds).sort((a, b) => (b === ground) - (a === ground))) {
			let d = '', path = '', back = '', any = 0;
			for (const one of columns) {
				const value = data.kinds[name][one.i]; any += value;
				path += `L${px(one.a)} ${px(y(one.low + value))}H${px(one.b)}`; back = `L${px(one.b)} ${px(y(one.low))}H${px(one.a)}${back}`;
				one.low += value;
				if (one.last) { if (any) d += `M${path.slice(1)}${back}Z`; path = back = ''; any = 0; }
			}
			if (d) make('path', { class: `area k-${name}`, 'data-area': name, d }, svg);
		}
		if (limit && limit <= top) { line('limit', LEFT, y(limit), right, y(limit)); text(right, y(limit) - 5, data.limit, 'end', 'limit-text'); }
		/* Marks near another or the edge are icons, and lie above each other; those above ROWS need a smaller range. */
		const visible = marks.filter(one => one.at >= from && one.at < to), used = [];
		for (const one of visible) {
			one.x = x(one.at);
			for (one.row = 0; used[one.row] > one.x - 26;) one.row++;
			used[one.row] = one.x; line('cut', one.x, -4 - 28 * Math.min(one.row, ROWS - 1), one.x, H);
		}
		if (most) {
			text(LEFT - 6, costTop + 9, data.units ? short(most) : '$' + (most / 1e6).toFixed(2), 'end');
			for (const [name, parts] of [['output', 3], ['written', 2], ['read', 1]]) {
				let d = '';
				for (const { a, b, i } of columns) { const h = sum(data.cost[i].slice(0, parts)) / most * costH; if (h) d += `M${px(a)} ${bottom}v${px(-h)}H${px(b - a > 3 ? b - .8 : b)}V${bottom}Z`; }
				make('path', { class: 'c-' + name, d }, svg);
			}
		}
		text(LEFT - 6, bottom, 0, 'end'); line('axis', LEFT, bottom, right, bottom);
		let turn, last = -99, ticks = '';
		for (let i = from; i < to; i++) {
			if (data.turn[i] !== turn) { turn = data.turn[i]; ticks += `M${px(x(i))} ${H}v6`; }
			if (data.pause[i] >= PAUSE && i > from && x(i) - last > 84) { last = x(i); text(Math.min(last, right - 42), H + 18, word('pause', { n: data.pause[i] })); }
		}
		make('path', { class: 'turn', d: ticks }, svg);
		const name = i => data.columns?.[i] ?? i + 1, each = round(to - from, narrow ? 3 : 8);
		if (timed) for (const part of [0, .25, .5, .75, 1]) {
			const clock = new Date(t0 + part * span).toLocaleString(page.lang, { timeStyle: 'short', hour12: false, dateStyle: span > 864e5 ? 'short' : undefined });
			text(LEFT + part * W, total - 4, clock, part === 1 ? 'end' : part ? 'middle' : 'start');
		} else {
			text(LEFT, total - 4, narrow || data.columns ? name(from) : word('request_one', { n: from + 1 }), 'start');
			for (let i = Math.ceil((from + 1) / each) * each - 1; i < to; i += each) if (i > from && middle(i) - LEFT > 70) text(middle(i), total - 4, name(i));
		}
		drawn = { x, middle, ending, column: make('rect', { class: 'chosen', y: 0, height: bottom }, svg), line: line('chosen-line', 0, -4, 0, bottom), hover: line('hover', 0, 0, 0, bottom), drag: make('rect', { class: 'chosen', y: 0, height: H }, svg) };
		pointer(make('rect', { class: 'hit', x: LEFT, y: 0, width: W, height: bottom }, svg));
		for (const [one, value] of [[scrub, at + 1], [begin, from + 1], [end, to]]) set(one, { min: 1, max: count() }).value = value;
		ends.hidden = count() <= MANY; scrub.style.top = bottom - 10 + 'px'; scrub.style.left = ends.style.marginLeft = LEFT + 'px'; scrub.style.width = ends.style.width = W + 'px';
		for (const one of marks) { one.hidden = !visible.includes(one) || one.row >= ROWS; one.parentNode.style.height = 28 * bound(used.length, 1, ROWS) + 'px'; }
		visible.forEach((one, n) => {
			const before = visible[n - 1]?.x ?? -99, after = visible[n + 1]?.x ?? 1e4;
			one.classList.toggle('short', narrow || Math.min(one.x - before, after - one.x, 2 * (right - one.x)) < 110);
			one.style.left = one.x + 'px'; one.style.bottom = 28 * one.row + 4 + 'px';
		});
		place();
	}

	/* A click selects, dragging zooms; a finger selects while it moves. */
	function pointer(hit) {
		let start = null, moved = false;
		const index = event => { const place = event.clientX - svg.getBoundingClientRect().left; let i = from; while (i < to - 1 && drawn.x(i + 1) <= place) i++; return i; };
		hit.onpointerdown = event => { start = index(event); moved = false; };
		hit.onpointermove = event => {
			const i = index(event);
			if (event.pointerType === 'touch') { if (event.buttons) select(i); return; }
			moved ||= event.buttons && start !== null && Math.abs(i - start) > 1;
			if (moved) { const a = drawn.x(Math.min(start, i)); set(drawn.drag, { x: a, width: drawn.ending(Math.max(start, i)) - a }); }
			over(i);
		};
		hit.onpointerup = event => { const i = index(event); if (moved) zoom(Math.min(start, i), Math.max(start, i) + 1); else select(i); start = null; };
		hit.onpointerleave = () => { over(null); moved = false; start = null; set(drawn.drag, { width: 0 }); };
	}

	function place() {
		if (!drawn) return;
		const show = (node, i, x = {}) => set(node, i !== null && i >= from && i < to ? { visibility: 'visible', x1: drawn.middle(i), x2: drawn.middle(i), ...x } : { visibility: 'hidden' });
		show(drawn.line, at); show(drawn.hover, hover); show(drawn.column, at, { x: drawn.x(at), width: Math.max(2, drawn.ending(at) - drawn.x(at)) });
		for (const one of marks) one.ariaPressed = one.at === at;
	}
	function over(i) { if (i !== hover) { hover = i; place(); onHover(i ?? at); } }
	function select(i) {
		at = bound(i, 0, count() - 1);
		if (at < from || at >= to) around(to - from);
		scrub.value = at + 1; scrub.ariaValueText = null; place(); onSelect(at);
	}
	function zoom(a, b) { from = a < count() ? Math.max(a, 0) : 0; to = bound(b, from + 1, count()); draw(); onZoom?.(from, to); }
	function around(wide) { const left = bound(at - (wide >> 1), 0, count() - wide); zoom(left, left + wide); }
	function scale(by) { around(Math.max(8, (to - from) * by | 0)); }
	scrub.oninput = () => select(scrub.value - 1);
	begin.oninput = () => zoom(begin.value - 1, Math.max(to, begin.value));
	end.oninput = () => zoom(Math.min(from, end.value - 1), +end.value);

	/* Keys work on the slider and anywhere outside of fields. */
	const nextMark = by => { const next = marks.map(one => one.at).filter(one => (one - at) * by > 0).at(by < 0 ? -1 : 0); if (next >= 0) select(next); };
	const nextTurn = by => { let i = at; while (data.turn[i] === data.turn[at]) i += by; select(i); };
	const step = (event, by) => event.shiftKey ? nextTurn(by) : select(at + by);
	const keys = { '[': () => nextMark(-1), ']': () => nextMark(1), '0': () => zoom(0, count()), '+': () => scale(.5), '-': () => scale(2), ArrowLeft: event => step(event, -1), ArrowRight: event => step(event, 1), Home: () => select(0), End: () => select(count() - 1) };
	const key = ({ detail: event }) => { if (keys[event.key] && (event.target === scrub || event.target.type !== 'range')) { event.preventDefault(); keys[event.key](event); } };
	document.addEventListener('lamina:key', key);
	const size = new ResizeObserver(() => { if (root.clientWidth !== width) draw(); });
	size.observe(root); zoom(...range);
	return {
		select, get at() { return at; }, scrub,
		axis(mode) { byTime = mode === 'time'; draw(); },
		highlight(name) { svg.classList.toggle('dim', name !== null); for (const node of svg.querySelectorAll('.area')) node.classList.toggle('on', node.dataset.area === name); },
		floor(name) { ground = name; draw(); },
		update(fresh, i, range) { data = fresh; at = i; hover = null; zoom(...range); },
		close() { document.removeEventListener('lamina:key', key); size.disconnect(); }
	};
};

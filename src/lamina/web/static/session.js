/* A session, until `signal` tells that another view is shown: its chart, the chosen or hovered request, and what is new. */
const { word, tell, fetchPage, refresh, moveTo, byId, on } = window.lamina, all = selector => document.querySelectorAll(selector), find = selector => all(selector)[0];
function show(shell, signal, ahead) {
	const address = shell.dataset.session, isBack = history.state?.y >= 0, when = (name, does) => on(name, does, { signal });
	const req = () => byId('req'), gone = () => byId('gone'), count = () => data.tokens.length;
	const failed = () => { if (!signal.aborted) tell(gone()?.checkVisibility() ? gone().firstChild.textContent : word('failed')); };
	let data, chart, floor = null, chosen = 0, pointed = 0, following, range, busy = false;

	/* Panels come one at a time: the chosen one, then the hovered one, of which only the numbers are shown: nothing jumps. */
	async function showPanels() {
		if (busy) return;
		busy = true;
		const controls = () => [...all('#req :is(a,button,summary)')];
		try {
			for (;;) {
				const old = req(), whole = +old?.dataset.number !== chosen, request = whole ? chosen : pointed;
				find(`[data-kind="${floor}"]`)?.setAttribute('aria-pressed', 'true');
				if (!request) break;
				const panel = (await fetchPage(`${address}/requests/${request}/panel`, true)).getElementById('req'), at = controls().indexOf(document.activeElement);
				if (signal.aborted) return;
				if (whole && request === chosen) { const top = old.scrollTop; old.replaceWith(panel); panel.scrollTop = top; }
				if (!whole && request === pointed) { pointed = 0; for (const id of ['hr', 'hrt', 'tot', 'kinds']) byId(id).replaceWith(panel.querySelector('#' + id)); }
				controls()[at]?.focus({ preventScroll: true });
			}
			if (chart) { chart.scrub.ariaValueText = req().dataset.sentence; blocks(); }
		} catch { failed(); pointed = 0; } finally { busy = false; }
	}
	/* The blocks of the chosen request, once it stays chosen for a moment. */
	let waiting, place;
	function blocks() {
		if (place === byId('blocks')) return;
		const mine = place = byId('blocks'); clearTimeout(waiting);
		if (mine.ariaBusy) waiting = setTimeout(async () => {
			const part = await fetchPage(mine.dataset.blocks, true).catch(failed);
			if (!part || !mine.isConnected) return;
			find('#req .strip').replaceWith(part.querySelector('.strip'));
			mine.replaceChildren(...part.body.childNodes); mine.ariaBusy = null;
		}, 40);
	}
	function point(i) { pointed = i + 1; showPanels(); }

	/* Selection and range are in the address; the first and the last request are not named there. */
	const asked = name => parseInt(new URL(location.href).searchParams.get(name)) || 0, askedRange = () => [asked('from') - 1, asked('to') || Infinity];
	function put(values, place) {
		const url = new URL(place);
		for (const name in values) if (values[name]) url.searchParams.set(name, values[name]); else url.searchParams.delete(name);
		return url;
	}
	const keep = values => moveTo(put(values, location.href));
	function choose(i) { chosen = i + 1; pointed = 0; following = chosen === count(); keep({ r: chosen }); mark(); }
	function mark() {
		byId('filter').elements.r.value = chosen;
		for (const { classList, dataset: { first, last } } of all('.turns > li')) classList.toggle('cur', first > 0 && first <= chosen && chosen <= last);
		for (const one of all('.rq')) one.classList.toggle('on', +one.dataset.r === chosen);
		showPanels(); settle();
	}

	async function load(begun) {
		const answer = await (begun || fetch(byId('chart').dataset.series));
		if (!answer.ok) throw Error();
		data = await answer.json();
	}
	function start() {
		shell = byId('session');
		if (signal.aborted || !count() || !req()) return;
		chosen = +req().dataset.number; following = chosen === count();
		chart = laminaChart(byId('chart'), data, {
			start: chosen - 1, range: askedRange(), word, onHover: point, onSelect: choose, onZoom: (from, to) => keep(range = { from: from && from + 1, to: to < count() ? to : 0 })
		});
		mark();
	}

	/* A running session: a view of the end stays there, unless its panel is in use; else what is new waits, and while text is selected. Another file is shown anew. */
	let followed = JSON.parse(shell.dataset.state), latest = followed, growing = false, news = 0;
	const isBehind = () => following && chosen < count(), end = () => document.documentElement.scrollHeight - 60, isAbove = (bottom = end()) => innerHeight + scrollY < bottom;
	function wait(n) { news = n; Object.assign(byId('new-below'), { textContent: word('new_below', { n }), hidden: !n }); }
	function settle() { if (news && !isBehind() && !isAbove()) wait(0); }
	async function grow() {
		if (growing) return;
		growing = true;
		while (latest !== followed && !signal.aborted && getSelection().isCollapsed) {
			const replaced = latest[1] < followed?.[1] || latest[0] !== followed?.[0], known = data?.tokens.length, bottom = end(), top = req()?.scrollTop;
			followed = latest;
			try {
				await load();
				if (replaced) {
					for (const one of all('#session [data-keep]')) delete one.dataset.keep;
					keep({ r: count(), from: 0, to: 0, turns: 0, turn: 0 }); chart?.close(); chart = floor = null; chosen = pointed = news = 0;
				} else if (chart) {
					if (following && !req().querySelector(':focus,details[open]')) chosen = count();
					keep({ r: chosen, turn: byId('d' + asked('turn'))?.open && asked('turn') });
				}
				await refresh();
				if (signal.aborted) return;
				if (replaced) tell(word('replaced'));
				if (!chart) { start(); continue; }
				const above = isAbove(bottom), listed = find(`.turns > [data-last="${count()}"]`);
				req().scrollTop = top;
				if (!above) scrollTo(0, 1e9);
				if (isBehind() || above && listed) wait(news + Math.max(0, count() - known));
			} catch { /* the stream tells of a lost server, the view of a lost file */ }
		}
		growing = false;
	}
	when('lamina:change', ({ detail: { state } }) => {
		if (state) { latest = state; grow(); return; }
		gone().hidden = false; failed(); find('#meta .live')?.remove();
		latest = followed = null;  /* whatever comes is another file */
	});
	when('lamina:content', () => {
		if (!chart) return;
		if (!asked('from') && !asked('to')) keep(range);
		if (shell !== byId('session')) { shell = byId('session'); chart.update(data, chosen - 1, askedRange()); }
		const r = asked('r'); if (r > 0 && r !== chosen) chart.select(r - 1); else mark();
	});
	when('click', event => {
		const at = selector => event.target.closest(selector), kind = at('#kinds button'), axis = at('[data-axis]'), request = at('[data-select]'), page = at('.pages a');
		if (!chart || event.ctrlKey || event.metaKey || event.shiftKey) return;
		if (kind) { floor = floor === kind.dataset.kind ? null : kind.dataset.kind; chart.floor(floor); point(chart.at); }
		if (axis) { for (const one of all('[data-axis]')) one.ariaPressed = one === axis; chart.axis(axis.dataset.axis); }
		if (request) { event.preventDefault(); chart.select(request.dataset.select - 1); }
		if (page) page.href = put({ r: chosen }, page.href);
		if (at('#new-below')) { if (isBehind()) chart.select(count() - 1); wait(0); scrollTo(0, 1e9); }
	});
	when('pointerover', event => { const kind = event.target.closest?.('#kinds button')?.dataset.kind; chart?.highlight(data.kinds[kind] ? kind : null); });
	when('scrollend', settle); when('selectionchange', grow);
	signal.addEventListener('abort', () => chart?.close());
	load(ahead).then(() => {
		start();
		const turn = chart && byId('d' + location.hash.slice(2));  /* of #t5 */
		if (turn) { turn.open = true; if (!isBack) { turn.scrollIntoView(); turn.firstElementChild.focus({ preventScroll: true }); } }
	}).catch(failed);
}
/* The data of the chart is asked for together with the view. */
let closing, ahead;
function open() {
	const shell = byId('session');
	closing?.abort(); closing = new AbortController();
	if (shell) show(shell, closing.signal, ahead);
	ahead = undefined;
}
on('lamina:visit', ({ detail: { url, signal } }) => {
	const { pathname } = new URL(url);
	if (/^\/sessions\/[^/]+\/[^/]+$/.test(pathname)) (ahead = fetch(pathname + '/series', { signal })).catch(() => {});
});
on('lamina:view', open); open();

/* A session, until `signal` tells that another view is shown: its chart, the chosen or hovered request, and what is new. */
const { word, tell, fetchPage, refresh, moveTo, byId, on } = window.lamina, all = selector => document.querySelectorAll(selector);
function show(address, signal, ahead) {
	const failed = () => { if (!signal.aborted) tell(word('failed')); };
	const isBack = history.state?.y >= 0;
	let data, chart, floor = null, chosen = 0, pointed = 0, shown = 0, busy = false;

	/* Panels come one at a time: the chosen one, then the hovered one, of which only the numbers are shown: nothing jumps. */
	async function panelOf(request) {
		const panel = (await fetchPage(`${address}/requests/${request}/panel`, true)).getElementById('req');
		panel.querySelector(`[data-kind="${floor}"]`)?.setAttribute('aria-pressed', 'true');
		return panel;
	}
	async function showPanels() {
		if (busy) return;
		busy = true;
		try {
			while (shown !== chosen || pointed) {
				const request = shown !== chosen ? chosen : pointed, whole = shown !== chosen, panel = await panelOf(request);
				if (signal.aborted) return;
				if (whole && request === chosen) showWhole(panel, request);
				if (!whole && request === pointed) { pointed = 0; for (const id of ['hr', 'hrt', 'tot', 'kinds']) byId(id).replaceWith(panel.querySelector('#' + id)); }
			}
		} catch { failed(); pointed = 0; shown = chosen; } finally { busy = false; }
	}
	function showWhole(panel, request) {
		const old = byId('req'), top = old.scrollTop, focus = old.querySelector(':focus')?.getAttribute('aria-label');
		shown = request; old.replaceWith(panel); panel.scrollTop = top;
		if (focus) panel.querySelector(`[aria-label="${focus}"]`)?.focus();
		chart.scrub.setAttribute('aria-valuetext', panel.dataset.sentence);
		blocks();
	}
	/* The blocks of the chosen request, once it stays chosen for a moment. */
	let waiting;
	function blocks() {
		const place = byId('blocks'); clearTimeout(waiting);
		waiting = setTimeout(async () => {
			const part = await fetchPage(place.dataset.blocks, true).catch(failed);
			if (!part || !place.isConnected) return;
			const strip = part.querySelector('.strip'); if (strip) document.querySelector('#req .strip').replaceWith(strip);
			place.replaceChildren(...part.body.childNodes); place.removeAttribute('aria-busy');
		}, 40);
	}
	function point(i) { pointed = i + 1; showPanels(); }
	function choose(i) {
		const url = new URL(location.href); url.searchParams.set('r', i + 1); moveTo(url);
		chosen = i + 1; pointed = 0; byId('filter').elements.r.value = chosen; markTurn(); showPanels();
	}
	function markTurn() {
		for (const { classList, dataset: { first, last } } of all('.turns > li')) classList.toggle('cur', first > 0 && first <= chosen && chosen <= last);
		for (const one of all('.rq')) one.classList.toggle('on', +one.dataset.r === chosen);
	}
	function openTurn(turn, quiet) { const one = byId('d' + turn); if (one) { one.open = true; if (!quiet) { one.scrollIntoView(); one.firstElementChild.focus({ preventScroll: true }); } } }

	async function load() {
		const answer = await (ahead || fetch(byId('chart').dataset.series));
		ahead = undefined;
		if (!answer.ok) throw new Error(answer.statusText);
		data = await answer.json();
	}
	async function start() {
		await load();
		if (signal.aborted || !data.tokens.length) return;
		chosen = shown = +byId('req').dataset.number;
		chart = window.laminaChart(byId('chart'), data, { start: chosen - 1, word, onHover: point, onSelect: choose });
		chart.scrub.setAttribute('aria-valuetext', byId('req').dataset.sentence);
		markTurn(); blocks();
		const turn = /^#t(\d+)$/.exec(location.hash); if (turn) openTurn(turn[1], isBack);
	}

	/* A running session: a view of the end stays there; else what is new waits below. */
	let latest, followed, growing = false;
	async function grow() {
		if (growing) return;
		growing = true;
		while (latest !== followed && !signal.aborted) {
			const replaced = followed && (latest[0] < followed[0] || latest[2] !== followed[2]), turns = () => all('.turns > li').length;
			const atEnd = chart && chart.at === data.tokens.length - 1, below = innerHeight + scrollY < document.documentElement.scrollHeight - 60, known = turns();
			followed = latest;
			try {
				if (!chart) { await refresh(); await start(); continue; }
				await load(); await refresh();
				if (signal.aborted) return;
				chart.update(data);
				if (replaced || atEnd) { shown = 0; chart.select(data.tokens.length - 1); }
				if (replaced) tell(word('replaced'));
				const added = turns() - known, button = byId('new-below');
				if (added > 0 && below) { button.dataset.count = +button.dataset.count + added; button.textContent = word('new_below', { n: button.dataset.count }); button.hidden = false; }
				else if (added > 0) scrollTo(0, 1e9);
			} catch { /* the stream tells when the server is gone; a file that is gone says so itself */ }
		}
		growing = false;
	}
	on('lamina:change', event => {
		const { state } = event.detail;
		if (state) { latest = state; grow(); return; }
		byId('gone').hidden = false; tell(byId('gone').firstChild.textContent); document.querySelector('#meta .live')?.remove();
		if (followed) followed = [Infinity, 0, 0];  /* whatever comes is another file */
	}, { signal });
	on('lamina:content', () => {
		const asked = new URL(location.href).searchParams.get('r') - 1;
		if (chart && asked >= 0 && asked !== chart.at) chart.select(asked); else markTurn();
	}, { signal });
	on('click', event => {
		const at = selector => event.target.closest(selector), kind = at('#kinds button'), axis = at('[data-axis]'), request = at('[data-select]'), turn = at('[data-turn]'), below = at('#new-below');
		if (!chart || event.ctrlKey || event.metaKey || event.shiftKey) return;
		if (kind) { floor = floor === kind.dataset.kind ? null : kind.dataset.kind; chart.floor(floor); point(chart.at); }
		if (axis) { for (const one of all('[data-axis]')) one.setAttribute('aria-pressed', one === axis); chart.axis(axis.dataset.axis); }
		if (request) { event.preventDefault(); chart.select(request.dataset.select - 1); }
		if (turn && byId('d' + turn.dataset.turn)) { event.preventDefault(); openTurn(turn.dataset.turn); }
		if (below) { below.dataset.count = 0; below.hidden = true; all('.turns > li:last-child')[0].scrollIntoView({ block: 'end' }); }
	}, { signal });
	on('pointerover', event => { const kind = event.target.closest?.('#kinds button')?.dataset.kind; chart?.highlight(data.kinds[kind] ? kind : null); }, { signal });
	signal.addEventListener('abort', () => chart?.close());
	start().catch(failed);
}
/* The data of the chart is asked for together with the view. */
let closing, ahead;
function open() {
	const shell = byId('session');
	closing?.abort(); closing = new AbortController();
	if (shell) show(shell.dataset.session, closing.signal, ahead);
	ahead = undefined;
}
on('lamina:visit', ({ detail: { url, signal } }) => {
	const { pathname } = new URL(url);
	if (/^\/sessions\/[^/]+\/[^/]+$/.test(pathname)) (ahead = fetch(pathname + '/series', { signal })).catch(() => {});
});
on('lamina:view', open); open();

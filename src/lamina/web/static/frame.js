/* Ways between views, fetched parts, the event stream, changes, keys. page.py explains attributes and events. */
const body = document.body, root = document.documentElement, byId = id => document.getElementById(id), active = () => document.activeElement, words = JSON.parse(body.dataset.words);
const word = (key, values = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
const [status, main, view] = ['status', 'main', 'view'].map(byId), frameOf = page => ['.top nav', '.search input', 'meta[name=lamina-secret]'].map(one => page.querySelector(one));
const [nav, search, { content: secret }] = frameOf(document);
const stop = event => event.preventDefault(), on = (name, does, how) => document.addEventListener(name, does, how), fire = (name, detail) => document.dispatchEvent(new CustomEvent('lamina:' + name, { detail }));

function parse(text) {
	const page = new DOMParser().parseFromString(text, 'text/html');
	for (const one of page.querySelectorAll('noscript')) one.remove();  /* else its content counts */
	return page;
}
async function fetchPage(url, part) {
	const answer = await fetch(url, { headers: part ? { 'X-Lamina-Part': '1' } : {} });
	if (part && !answer.ok) throw Error(url);
	return parse(await answer.text());
}
const partsOf = page => [...(page.querySelector('main') || page.body).childNodes];

/* The focus: an id, or a number among the controls of the nearest named box and of the page: it stays at a saved row, or goes on from
	 a removed one, or with Undo back to it. */
const controls = place => [...place.querySelectorAll('button,textarea,select,a,summary,input:not([type=hidden]),[tabindex]')];
const named = (key, value) => value && `[${key}="${CSS.escape(value)}"]`;
let spot;
function remember() {
	const one = active();
	if (!status.contains(one)) spot = undefined;
	if (one === main || !main.contains(one)) return;
	const box = one.closest('[id]'), at = one.matches('.close') && main.querySelector('.card[aria-current]') || one;
	const same = named('id', at.id) || named('href', at.getAttribute('href')) || named('name', at.name);
	spot = { path: pathOf(address), id: one.id, same, box: box.id, inBox: controls(box).indexOf(one), inPage: controls(main).indexOf(one), caret: one.selectionStart, y: at.getBoundingClientRect().y };
}
function restore() {
	if (!spot || active() !== body) return;
	const box = byId(spot.box), inBox = box && box !== main && (controls(box)[spot.inBox] || controls(box)[0]);
	const one = byId(spot.id) || inBox || spot.path === pathOf(address) && (controls(main)[spot.inPage] || controls(main).at(-1)) || main;
	one.focus({ preventScroll: true });
	if (one.selectionStart != null) one.selectionStart = one.selectionEnd = spot.caret ?? 1e9;
}

/* Changed fields, and those with unsaved text. */
const touched = one => one.defaultSelected && !one.selected || one.checked !== one.defaultChecked || (one.defaultValue ?? one.value) !== one.value || one.form.dataset.unsaved;
const fields = test => [...main.querySelectorAll('form :is(input,textarea,option)')].filter(one => !one.form.ariaBusy && test(one));
const unsaved = () => fields(one => touched(one) && one.selectionStart != null && one.closest('[data-change]'));
window.onbeforeunload = event => { if (unsaved()[0]) stop(event); };

/* Shows a page, with what is kept. */
const isOurs = page => frameOf(page)[2]?.content === secret, isSpoken = page => page.documentElement.lang === root.lang;
function put(page, kept) {
	clearTimeout(due); remember();
	for (const old of kept) page.getElementById(old?.id)?.replaceWith(old);
	main.replaceChildren(...page.getElementById('main').childNodes);
	nav.replaceChildren(...frameOf(page)[0].childNodes);
	document.title = page.title;
	const { watch = '' } = body.dataset;
	Object.assign(body.dataset, { watch: '' }, page.body.dataset);
	if (body.dataset.watch !== watch) listen();
}
/* The view as it is now, with the forms in use. What is unfolded stays if its head does; else it is read again first. */
async function refresh(live) {
	const mine = visits, from = address, page = await fetchPage(from), twin = ({ form }) => page.getElementById(form.id);
	if (!isOurs(page)) return;
	if (!isSpoken(page) && !unsaved()[0]) { location.reload(); return; }
	const head = place => place?.querySelector('summary').textContent, open = [];
	for (const old of opened()) {
		const one = page.getElementById(old.id);
		open.push(head(one) === head(old) ? old : await unfold(one));
	}
	if (mine !== visits || !unsaved().every(twin)) return;
	if (live && isHeld()) return follow();
	if (from !== address) return refresh(live);
	const y = scrollY;
	put(page, [...open, ...main.querySelectorAll('[data-keep]'), ...fields(one => touched(one) || one === active()).map(one => one.form)]); scrollTo(0, y); fire('content'); restore();
}

/* Shows another view; `back` returns to the place that was left. Another language or server, or no page, is loaded.
	 `sure` does not ask about unsaved text; it may hold options of fetch.
	 A form's first field gets the focus; else a control in both views keeps it, and its place. */
let visits = 0, address, entry;
const settle = url => { address = url; entry = window.navigation?.currentEntry.key; };
settle(location.href);
const bare = url => url.split('#')[0], there = () => bare(location.href) === bare(address), pathOf = url => new URL(url).pathname;
let leaving;
async function visit(url, back, sure) {
	if (!sure && unsaved()[0] && !confirm(word('unsaved'))) { if (back) window.navigation ? navigation.traverseTo(entry) : history.pushState({}, '', address); return; }
	const mine = ++visits;
	body.ariaBusy = true;
	try {
		const away = pathOf(url) !== pathOf(address);
		if (away) { leaving?.abort(); leaving = new AbortController(); }
		const signal = leaving?.signal, asked = fetch(url, { signal, cache: 'no-store', ...sure }); if (away) fire('visit', { url, signal });
		const answer = await asked, page = parse(await answer.text());
		for (const id of back && history.state?.open || []) await unfold(page.getElementById(id));
		if (mine !== visits || back && url !== location.href) return;
		if (!isOurs(page) || !isSpoken(page)) { if (back) location.reload(); else location.assign(url); return; }
		const { hash } = new URL(url), to = bare(answer.url), within = pathOf(to) === pathOf(address) && !byId('opening');
		if (!back) { remember(); note(spot?.same); }
		put(page, within ? main.querySelectorAll('[data-keep]:not(form)') : []);
		if (!back && to !== bare(address)) history[sure?.headers ? 'replaceState' : 'pushState']({}, '', to);
		settle(to);
		if (!back && hash) location.replace(hash);  /* CSS learns of a target by this alone */
		view.textContent = document.title;
		if (active() !== search) search.value = frameOf(page)[1].value;
		arrive(back ? history.state?.y || 0 : hash ? scrollY : undefined, back ? history.state : spot); if (!within) fire('view'); fire('content');
	} catch { if (mine === visits) failed(); } finally { if (mine === visits) body.ariaBusy = null; }
}
const seek = () => main.querySelector('[data-here]')?.scrollIntoView({ block: 'center' });
function arrive(y, left) {
	const first = main.querySelector('[autofocus]'), same = left?.same && main.querySelector(left.same), place = () => same.getBoundingClientRect().y;
	scrollTo(0, y ?? (first ? scrollY : same && innerWidth > 900 ? scrollY + place() - spot.y : 0));
	if (active() !== search) (first || same && place() < innerHeight && same || main).focus({ preventScroll: !first });
	if (y == null) seek();
}
/* What is left, for the way back. */
const opened = () => [...main.querySelectorAll('details[open][id]')];
const note = same => { if (there()) history.replaceState({ y: scrollY, same, open: opened().map(one => one.id) }, ''); };
/* A choice within a view has an address. */
function moveTo(url) { if (!there()) return; history.replaceState(history.state, '', url); address = location.href; }
const addressOf = (form, sender) => { const url = new URL(form.action); url.search = new URLSearchParams([...new FormData(form, sender)].filter(([, value]) => value)); return url.href; };

let fading;
function tell(message, undo, from) {
	clearTimeout(fading); status.textContent = message; status.hidden = false;
	if (undo) {
		const button = Object.assign(document.createElement('button'), { textContent: word('undo'), id: 'undo' }); status.append(button);
		button.onclick = () => { button.onclick = null; button.focus(); spot = from; change(undo.url, undo.fields || {}); };
	}
	fading = setTimeout(() => { status.hidden = true; }, 10000);
}
const failed = () => tell(word('failed'));

/* Sends a change, and shows what it did; or in place of the form both versions. */
let changing = 0;
async function change(url, fields, form = {}) {
	changing++; form.ariaBusy = true;
	try {
		const answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Lamina-Secret': secret }, body: JSON.stringify(fields) });
		const text = await answer.text();
		let said;
		try { said = JSON.parse(text); } catch { said = { message: text }; }
		if (answer.ok || !form.action) await (said.location && !unsaved()[0] ? visit(new URL(said.location, location.href).href) : refresh());
		else if (said.html && form.isConnected) {
			const place = form.closest('[data-conflict]') || form;
			place.replaceChildren(...partsOf(parse(said.html))); controls(place)[0]?.focus();
		}
		tell(said.message, said.undo, spot); restore();  /* last: its Undo belongs to the view that is shown */
	} catch { failed(); } finally { changing--; form.ariaBusy = null; }
}

/* A form whose answer replaces parts of the view: one at a time, the newest next. */
let wanted, finding;
async function find(form) {
	wanted = form;
	while (wanted && !finding) {
		const one = wanted, url = addressOf(one);
		wanted = undefined; finding = true;
		const page = await fetchPage(url, true).catch(failed);
		finding = false;
		if (!page || !one.isConnected) continue;
		for (const id of one.dataset.find.split(' ')) byId(id)?.replaceWith(page.getElementById(id));
		moveTo(url); fire('content');
		if (main.querySelector('[data-again]')) wanted ||= one;
	}
}
async function load(one) {
	if (!one.dataset.load || one.dataset.loaded) return;
	one.dataset.loaded = '1';
	try { one.append(...partsOf(await fetchPage(one.dataset.load, true))); } catch { failed(); delete one.dataset.loaded; }
}
async function unfold(one) { if (one) { one.open = true; await load(one); } }
on('submit', event => {
	const form = event.target, sender = event.submitter;
	if (form.method === 'dialog') return;
	stop(event);
	if (form.matches('[data-find]')) find(form);
	else if (form.method === 'get') { search.blur(); visit(addressOf(form, sender)); }
	else if (!form.ariaBusy) change(sender?.hasAttribute('formaction') ? sender.formAction : form.action, Object.fromEntries(new FormData(form, sender)), form);
});
for (const name of ['input', 'compositionend']) on(name, ({ target: { form }, isComposing }) => { if (!isComposing && form?.matches('[data-find]')) find(form); });
on('change', ({ target }) => { if (target.closest('[data-auto]')) target.form.requestSubmit(); });
on('formdata', ({ target, formData }) => { const other = byId(target.dataset.with); if (other) for (const one of new FormData(other)) formData.append(...one); });
on('toggle', async ({ target }) => { note(); if (target.open) { await load(target); fire('content'); } }, true);
on('click', event => {
	const at = selector => event.target.closest(selector), link = at('a[data-load]'), lang = at('.lang');
	if (at('[data-copy]')) navigator.clipboard.writeText(location.href).then(() => tell(word('copied')));
	if (at('[data-keys]')) help();
	if (at('.theme')) { const { theme } = root.dataset, dark = theme ? theme === 'dark' : matchMedia('(prefers-color-scheme:dark)').matches; localStorage['lamina-theme'] = root.dataset.theme = dark ? 'light' : 'dark'; }
	if (lang) { const url = new URL(address); url.searchParams.set('lang', lang.lang); lang.href = url; }
	if (link) { stop(event); fetchPage(link.dataset.load, true).then(page => link.parentElement.replaceChildren(...partsOf(page)), failed); }
});

/* The second click of a double click decides nothing, nor in a view that the first one opened. */
let clicked;
addEventListener('click', event => {
	if (event.detail < 2) clicked = pathOf(address);
	else if (clicked !== pathOf(address) || event.target.closest('[data-change] button')) { stop(event); event.stopPropagation(); }
}, true);
addEventListener('click', event => {
	const link = event.target.closest('a[href]:not([download],[lang])');
	if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || link.origin !== location.origin) return;
	const { anew } = link.dataset;
	if (anew || !link.hash || bare(link.href) !== bare(address)) { stop(event); visit(link.href, false, anew); }
});

/* One stream, closed while the page is hidden. */
let stream, lost;
function listen() {
	stream?.close(); delete root.dataset.live;
	if (!body.dataset.watch || document.hidden) return;
	stream = new EventSource('/live?' + body.dataset.stream);
	const hear = (name, does) => stream.addEventListener(name, does);
	hear('ready', () => { root.dataset.live = '1'; if (lost) { lost = false; status.hidden = true; } });
	hear('change', event => fire('change', JSON.parse(event.data)));
	hear('error', () => { delete root.dataset.live; if (!lost) { lost = true; tell(word('lost')); clearTimeout(fading); } });
}
on('visibilitychange', listen);
history.scrollRestoration = 'manual';
window.onpagehide = () => { stream?.close(); history.scrollRestoration = 'auto'; };
/* A changed view is shown again, but not under the user's hands. */
let due, shown = 0;
const isHeld = () => changing || root.matches(':active') || active().matches('textarea,input:not([type=range]),:is(select:open)') || !getSelection().isCollapsed;
function follow() {
	clearTimeout(due);
	if (!main.querySelector('[data-live=own]')) due = setTimeout(() => { shown = Date.now(); if (isHeld()) follow(); else refresh(true).catch(() => {}); }, Math.max(150, shown + 2000 - Date.now()));
}
on('lamina:change', follow);
window.onpopstate = () => { if (!there()) visit(location.href, true); else { settle(location.href); if (history.state) scrollTo(0, history.state.y || 0); } };
addEventListener('scrollend', () => note());

/* Keys. Letters are off in fields, or switched off. */
const dialog = byId('keys'), onOff = byId('keys-switch'), off = () => localStorage['lamina-keys'] === 'off';
const mark = () => { onOff.ariaChecked = !off(); }, help = () => { mark(); dialog.showModal(); };
onOff.onclick = () => { localStorage['lamina-keys'] = off() ? 'on' : 'off'; mark(); tell(word(off() ? 'keys_off' : 'keys_on')); };
function step(by) {
	const all = [...main.querySelectorAll('[data-row],.list>li>a,.turns>li>details>summary')].filter(one => one.offsetParent);
	const at = all.indexOf(active()), next = all[at < 0 && by < 0 ? all.length - 1 : at + by];
	next?.focus(); next?.scrollIntoView({ block: 'nearest' });
}
let going = 0;
on('keydown', event => {
	const { key, target } = event, field = target.closest('input:not([type=range],[type=checkbox]),textarea,select');
	if (event.repeat && key === 'Enter' && !target.matches('textarea')) stop(event);
	if (event.ctrlKey || event.metaKey || event.altKey) return;
	if (key === 'Escape') field?.blur();
	if (field || dialog.open || off() && key.length === 1) return;
	const went = Date.now() - going < 1500;
	going = key === 'g' && !went ? Date.now() : 0;
	if (went) { const link = nav.querySelector(named('data-key', key)); if (link) { stop(event); link.click(); } }
	else if (key === '/') { stop(event); search.focus(); }
	else if (key === '?') help();
	else if (key === 'j' || key === 'k') { stop(event); step(key === 'j' ? 1 : -1); }
	else if (event.repeat) ;
	else if (key === 'o' && target.matches('summary')) target.click();
	else if (key === 'u' && !status.hidden) byId('undo')?.click();
	else (target.closest('[data-decide]') || main).querySelector(named('data-hotkey', key) + ':not([disabled])')?.click();
	if (!went) fire('key', event);
});

/* A copied address leaves its reader their language. */
const here = new URL(location.href);
if (here.searchParams.has('lang')) { here.searchParams.delete('lang'); moveTo(here); }
/* Where the list is beside the open memory. */
if (innerWidth > 900) document.querySelector('.card[aria-current]')?.scrollIntoView({ block: 'nearest' });
seek();
/* Asks again for what was being read. */
const opening = () => { if (byId('opening')) visit(address, false, { headers: { Prefer: 'wait' } }); };
on('lamina:content', opening); opening();
listen();
window.lamina = { fetchPage, refresh, tell, word, moveTo, byId, on };

/* What every view uses: fragments, the event stream, forms that change something, and keys. No innerHTML, no inline style.

   window.lamina.fetchPart(url)         -> Promise<DocumentFragment>    HTML from this server, parsed without running scripts
   window.lamina.replace(element, url)  -> Promise<void>                replaces the element's children by a fragment
   window.lamina.refresh(keepUrl?)      -> Promise<void>                fetches this view again and replaces <main>; focus and scroll stay
   window.lamina.tell(message, undo?)                                   one line, with Undo for ten seconds
   window.lamina.change(url, fields)    -> Promise<answer|null>         sends a change with the secret
   window.lamina.word(key, values?)                                     a text of words/frame.py, "js." left out
   Events on document: lamina:change {detail: {watch, state}} from the stream; lamina:content after <main> was replaced.
   Forms:  data-change  is sent by script (fields as JSON);  data-auto  is sent when a field changes.
   Keys:   data-key on a link is its letter after g; [data-hotkey="e"] is clicked by its letter; .row-focus for j and k: [data-row]. */
(function () {
  'use strict';
  const body = document.body, secret = document.querySelector('meta[name=lamina-secret]')?.content || '';
  const words = JSON.parse(body.dataset.words || '{}');
  const word = (key, values) => (words[key] || key).replace(/\{(\w+)\}/g, (_, name) => (values || {})[name] ?? '');
  const status = document.getElementById('status');
  let fading;

  const parse = text => new DOMParser().parseFromString(text, 'text/html');
  async function fetchPart(url) {
    const answer = await fetch(url, { headers: { 'X-Lamina-Part': '1' } });
    const found = parse(await answer.text()), part = document.createDocumentFragment();
    part.append(...(found.querySelector('main') || found.body).childNodes);
    return part;
  }
  async function replace(element, url) { element.replaceChildren(await fetchPart(url)); }

  /* What has the focus: its id; or its kind, and which of that kind it is within its nearest named box and on the page. So the
     focus stays at a row that was saved, and goes to the next row when its own is gone. Undo goes back to where the change began. */
  const CONTROLS = 'button,textarea,select,a,input:not([type=hidden])';
  let spot;
  function remember() {
    const one = document.activeElement, main = document.getElementById('main');
    if (!one || one === main || !main.contains(one)) { if (!status.contains(one)) spot = undefined; return; }
    const kind = one.dataset.hotkey ? `[data-hotkey="${one.dataset.hotkey}"]` : one.localName + (one.name ? `[name="${one.name}"]` : ':not([name])') + (one.localName === 'button' || one.localName === 'a' ? `[class="${one.className}"]` : '');
    const box = one.closest('[id]'), at = place => [...place.querySelectorAll(kind)].indexOf(one);
    spot = { id: one.id, kind, box: box.id, inBox: at(box), inPage: at(main) };
  }
  function restore(elsewhere) {
    if (!spot || document.activeElement !== body) return;
    const main = document.getElementById('main'), box = document.getElementById(spot.box), all = main.querySelectorAll(spot.kind);
    const inBox = box && box !== main && (box.querySelectorAll(spot.kind)[spot.inBox] || box.querySelector(CONTROLS));
    const found = document.getElementById(spot.id) || inBox || !elsewhere && all[Math.min(spot.inPage, all.length - 1)] || main;
    found.focus({ preventScroll: !elsewhere });
  }

  /* The same view again. What had the focus, what was folded open and where the page stood stays, by id. */
  async function refresh(url) {
    const answer = await fetch(url || location.href), found = parse(await answer.text());
    const main = document.getElementById('main'), next = found.getElementById('main');
    if (!next) return;
    const y = scrollY, elsewhere = url && url !== location.href; remember();
    const open = [...main.querySelectorAll('details[open][id]')].map(one => one.id);
    main.replaceChildren(...next.childNodes);
    const nav = document.querySelector('.top nav'), fresh = found.querySelector('.top nav');
    if (nav && fresh) nav.replaceWith(fresh);
    document.title = found.title; body.dataset.seen = found.body.dataset.seen || '';
    if (found.body.dataset.watch !== body.dataset.watch) { body.dataset.watch = found.body.dataset.watch || ''; listen(); }
    for (const id of open) { const one = document.getElementById(id); if (one) one.open = true; }
    if (elsewhere) history.pushState({}, '', url); else scrollTo(0, y);
    restore(elsewhere);
    document.dispatchEvent(new CustomEvent('lamina:content'));
  }

  function tell(message, undo, from) {
    clearTimeout(fading);
    const text = document.createElement('span'); text.textContent = message; status.replaceChildren(text);
    if (undo) {
      const button = document.createElement('button'); button.type = 'button'; button.textContent = word('undo'); button.id = 'undo';
      button.addEventListener('click', () => { button.focus(); spot = from; change(undo.url, undo.fields || {}); });
      status.append(button);
    }
    status.hidden = false; fading = setTimeout(() => { status.hidden = true; }, 10000);
  }

  /* Sends a change. Shows its sentence and the view as it is now; a conflict replaces the form by both versions. */
  let changing = 0;
  async function change(url, fields, form) {
    changing++;
    try { return await send(url, fields, form); } finally { changing--; }
  }
  async function send(url, fields, form) {
    let answer, said;
    try {
      answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Lamina-Secret': secret }, body: JSON.stringify(fields) });
      const text = await answer.text();
      try { said = JSON.parse(text); } catch { said = { message: text }; }
    } catch { tell(word('failed')); return null; }
    if (answer.status === 409 && said.html && form) {
      const place = form.closest('[data-conflict]') || form;
      place.replaceChildren(...parse(said.html).body.childNodes); place.querySelector(CONTROLS)?.focus();
      tell(said.message); return null;
    }
    if (!answer.ok) { tell(said.message); return null; }
    if (said.location && new URL(said.location, location.href).href !== location.href) await refresh(new URL(said.location, location.href).href);
    else await refresh();
    tell(said.message, said.undo, spot); restore();  /* Last: its Undo belongs to the view that is shown. */
    return said;
  }

  document.addEventListener('submit', event => {
    const form = event.target, sender = event.submitter;
    if (!form.matches('form[data-change]')) return;
    event.preventDefault();
    const fields = {};
    for (const [name, value] of new FormData(form, sender || undefined)) fields[name] = String(value);
    change(sender?.hasAttribute('formaction') ? sender.formAction : form.action, fields, form);
  });
  document.addEventListener('change', event => { const form = event.target.form; if (form?.matches('form[data-auto]')) form.requestSubmit(); });
  document.addEventListener('click', event => {
    const copy = event.target.closest('[data-copy]');
    if (copy) { event.preventDefault(); navigator.clipboard.writeText(new URL(copy.dataset.copy || location.href, location.href).href).then(() => tell(word('copied'))); }
    const row = event.target.closest('[data-load]');
    if (row && row.matches('button,a')) { event.preventDefault(); const into = document.getElementById(row.dataset.into) || row.parentElement; replace(into, row.dataset.load).catch(() => tell(word('failed'))); }
  });
  /* A <details data-load="url"> gets its content when it is opened. */
  document.addEventListener('toggle', event => {
    const one = event.target;
    if (!one.matches?.('details[data-load]') || !one.open || one.dataset.loaded) return;
    one.dataset.loaded = '1';
    const into = document.createElement('div'); one.append(into); into.setAttribute('aria-busy', 'true');
    fetchPart(one.dataset.load).then(part => { into.replaceWith(part); document.dispatchEvent(new CustomEvent('lamina:part', { detail: one })); }).catch(() => { into.textContent = word('failed'); delete one.dataset.loaded; });
  }, true);

  /* One stream for the page; while the page is hidden it is closed. */
  let stream, lost;
  function listen() {
    stream?.close(); stream = undefined;
    const watches = (body.dataset.watch || '').split(' ').filter(Boolean);
    if (!watches.length || document.hidden) return;
    const seen = (body.dataset.seen || '').split(' ');  /* what is shown: the stream tells at once what is newer */
    stream = new EventSource('/live?' + watches.map((one, at) => `watch=${encodeURIComponent(one)}&seen=${seen[at] || ''}`).join('&'));
    stream.addEventListener('ready', () => { document.documentElement.dataset.live = '1'; if (lost) { lost = false; status.hidden = true; } });
    stream.addEventListener('change', event => document.dispatchEvent(new CustomEvent('lamina:change', { detail: JSON.parse(event.data) })));
    stream.addEventListener('error', () => { delete document.documentElement.dataset.live; if (!lost) { lost = true; tell(word('lost')); clearTimeout(fading); } });
  }
  document.addEventListener('visibilitychange', listen);
  addEventListener('pagehide', () => stream?.close());
  /* A view that is a list shows itself again when what it lists has changed. Views with their own way set data-live="own". */
  let due, shown = 0;
  document.addEventListener('lamina:change', () => {
    if (document.querySelector('[data-live=own]') || document.activeElement?.matches('textarea,input:not([type=range])')) return;
    clearTimeout(due); due = setTimeout(() => { if (changing) return; shown = Date.now(); refresh(); }, Math.max(150, shown + 2000 - Date.now()));
  });
  addEventListener('popstate', () => { if (!document.querySelector('[data-live=own]')) refresh(); else location.reload(); });

  /* Keys. Letters are off in fields, and wherever somebody switched them off. */
  const dialog = document.getElementById('keys'), off = () => localStorage.getItem('lamina-keys') === 'off';
  const onOff = document.getElementById('keys-switch');
  const mark = () => onOff?.setAttribute('aria-checked', String(!off()));
  onOff?.addEventListener('click', () => { localStorage.setItem('lamina-keys', off() ? 'on' : 'off'); mark(); tell(word(off() ? 'keys_off' : 'keys_on')); });
  document.addEventListener('click', event => { if (event.target.closest('[data-keys]')) dialog?.showModal(); });
  mark();
  let going = 0;
  const rows = () => [...document.querySelectorAll('main [data-row], main .list > li > a, main .turns > li > details > summary')].filter(one => one.offsetParent);
  function step(by) {
    const all = rows(), at = all.indexOf(document.activeElement), next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
    next?.focus(); next?.scrollIntoView({ block: 'nearest' });
  }
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest('input:not([type=range]):not([type=checkbox]),textarea,select,[contenteditable]');
    if (event.key === 'Escape') { if (field) field.blur(); return; }
    if (field || off() || dialog?.open) return;
    const key = event.key;
    if (going && Date.now() - going < 1500) {
      going = 0;
      const link = document.querySelector(`.top nav a[data-key="${CSS.escape(key)}"]`);
      if (link) { event.preventDefault(); location.href = link.href; }
      return;
    }
    if (key === 'g') { going = Date.now(); return; }
    if (key === '/') { event.preventDefault(); document.querySelector('.search input')?.focus(); }
    else if (key === '?') dialog?.showModal();
    else if (key === 'j' || key === 'k') { event.preventDefault(); step(key === 'j' ? 1 : -1); }
    else if (key === 'o' && document.activeElement.matches('summary')) document.activeElement.click();
    else if (key === 'u' && !status.hidden) document.getElementById('undo')?.click();
    else document.querySelector(`main [data-hotkey="${CSS.escape(key)}"]:not([disabled])`)?.click();
  });
  /* The language is in a cookie now; an address that is copied leaves the reader theirs. */
  const here = new URL(location.href);
  if (here.searchParams.has('lang')) { here.searchParams.delete('lang'); history.replaceState({}, '', here); }
  listen();
  window.lamina = { fetchPart, replace, refresh, tell, change, word, parse };
})();

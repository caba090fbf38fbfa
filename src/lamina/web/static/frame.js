/* Shared by all views: fetched parts, the event stream, forms that change something, and keys. page.py explains the attributes.
   No innerHTML, no inline style. Events on document: lamina:change from the stream, lamina:content for
   new content, lamina:key for the keys of a view. */
(function () {
  'use strict';
  const body = document.body, root = document.documentElement, byId = id => document.getElementById(id);
  const secret = document.querySelector('meta[name=lamina-secret]').content, words = JSON.parse(body.dataset.words);
  const word = (key, values = {}) => words[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
  const status = byId('status'), main = byId('main');

  const parse = text => new DOMParser().parseFromString(text, 'text/html');
  async function fetchPage(url, part) {
    const answer = await fetch(url, { headers: part ? { 'X-Lamina-Part': '1' } : {} });
    if (part && !answer.ok) throw new Error(answer.statusText);
    return parse(await answer.text());
  }
  const partsOf = page => [...(page.querySelector('main') || page.body).childNodes];

  /* The focus: an id, or a number among the controls of the nearest named box and of the page. So it stays at a saved row, and
     goes to the next one when its row is removed. Undo goes back to where the change began. */
  const controls = place => [...place.querySelectorAll('button,textarea,select,a,summary,input:not([type=hidden]),[tabindex]')];
  let spot;
  function remember() {
    const one = document.activeElement;
    if (one === main || !main.contains(one)) { if (!status.contains(one)) spot = undefined; return; }
    const box = one.closest('[id]');
    spot = { id: one.id, box: box.id, inBox: controls(box).indexOf(one), inPage: controls(main).indexOf(one) };
  }
  function restore(elsewhere) {
    if (!spot || document.activeElement !== body) return;
    const box = byId(spot.box), inBox = box && box !== main && (controls(box)[spot.inBox] || controls(box)[0]);
    const found = byId(spot.id) || inBox || !elsewhere && (controls(main)[spot.inPage] || controls(main).at(-1)) || main;
    found.focus({ preventScroll: !elsewhere });
  }

  async function refresh(url = location.href) {
    const page = await fetchPage(url), next = page.getElementById('main'), elsewhere = url !== location.href, y = scrollY;
    if (!next) return;
    /* What is unfolded stays as it is if its head does; else it is read again before it is shown. */
    await Promise.all([...main.querySelectorAll('details[open][id]')].map(async old => {
      const one = page.getElementById(old.id);
      if (one?.querySelector('summary').textContent === old.querySelector('summary').textContent) one.replaceWith(old);
      else if (one) { one.open = true; await load(one); }
    }));
    remember();
    for (const old of main.querySelectorAll('[data-keep]')) page.getElementById(old.id)?.replaceWith(old);
    main.replaceChildren(...next.childNodes);
    document.querySelector('.top nav').replaceWith(page.querySelector('.top nav'));
    document.title = page.title;
    const { watch } = body.dataset;
    Object.assign(body.dataset, { watch: '', seen: '' }, { ...page.body.dataset });
    if (body.dataset.watch !== (watch || '')) listen();
    if (elsewhere) history.pushState({}, '', url); else scrollTo(0, y);
    document.dispatchEvent(new Event('lamina:content'));
    restore(elsewhere);
  }

  let fading;
  function tell(message, undo, from) {
    clearTimeout(fading); status.textContent = message; status.hidden = false;
    if (undo) {
      const button = document.createElement('button'); button.textContent = word('undo'); button.id = 'undo'; status.append(button);
      button.addEventListener('click', () => { button.focus(); spot = from; change(undo.url, undo.fields || {}); });
    }
    fading = setTimeout(() => { status.hidden = true; }, 10000);
  }
  const failed = () => tell(word('failed'));

  /* Sends a change. Shows its sentence and the view as it is now; a conflict replaces the form by both versions. */
  let changing = 0;
  async function change(url, fields, form) {
    changing++;
    try {
      const answer = await fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-Lamina-Secret': secret }, body: JSON.stringify(fields) });
      const text = await answer.text();
      let said;
      try { said = JSON.parse(text); } catch { said = { message: text }; }
      if (answer.ok) await refresh(said.location && new URL(said.location, location.href).href);
      else if (said.html && form) {
        const place = form.closest('[data-conflict]') || form;
        place.replaceChildren(...partsOf(parse(said.html))); controls(place)[0]?.focus();
      }
      tell(said.message, said.undo, spot); restore();  /* last: its Undo belongs to the view that is shown */
    } catch { failed(); } finally { changing--; }
  }

  /* A form whose answer replaces parts of the view: the newest one. */
  let typed = 0, typing;
  async function find(form) {
    const url = new URL(form.action), mine = ++typed;
    url.search = new URLSearchParams([...new FormData(form)].filter(([, value]) => value)).toString();
    const page = await fetchPage(url, true).catch(failed);
    if (!page || mine !== typed) return;
    for (const id of form.dataset.find.split(' ')) byId(id)?.replaceWith(page.getElementById(id));
    history.replaceState({}, '', url); document.dispatchEvent(new Event('lamina:content'));
  }
  async function load(one) {
    if (!one.dataset.load || one.dataset.loaded) return;
    one.dataset.loaded = '1';
    try { one.append(...partsOf(await fetchPage(one.dataset.load, true))); } catch { failed(); delete one.dataset.loaded; }
  }
  document.addEventListener('submit', event => {
    const form = event.target, sender = event.submitter;
    if (form.matches('[data-find]')) { event.preventDefault(); find(form); }
    if (!form.matches('[data-change]')) return;
    event.preventDefault();
    change(sender?.hasAttribute('formaction') ? sender.formAction : form.action, Object.fromEntries(new FormData(form, sender)), form);
  });
  document.addEventListener('input', event => { const { form } = event.target; if (form?.matches('[data-find]')) { clearTimeout(typing); typing = setTimeout(() => find(form), 80); } });
  document.addEventListener('change', ({ target }) => { if (target.closest('[data-auto]')) target.form.requestSubmit(); });
  document.addEventListener('formdata', ({ target, formData }) => { const other = byId(target.dataset.with); if (other) for (const one of new FormData(other)) formData.append(...one); });
  document.addEventListener('toggle', async event => { if (event.target.open) { await load(event.target); document.dispatchEvent(new Event('lamina:content')); } }, true);
  document.addEventListener('click', event => {
    const on = selector => event.target.closest(selector), link = on('a[data-load]');
    if (on('[data-copy]')) navigator.clipboard.writeText(location.href).then(() => tell(word('copied')));
    if (on('[data-keys]')) dialog.showModal();
    if (on('.theme')) { const dark = root.dataset.theme === 'dark' || !root.dataset.theme && matchMedia('(prefers-color-scheme:dark)').matches; localStorage.setItem('lamina-theme', root.dataset.theme = dark ? 'light' : 'dark'); }
    if (link) { event.preventDefault(); fetchPage(link.dataset.load, true).then(page => link.parentElement.replaceChildren(...partsOf(page)), failed); }
  });

  /* One stream for the page, closed while the page is hidden. */
  let stream, lost;
  function listen() {
    stream?.close();
    const watches = (body.dataset.watch || '').split(' '), seen = (body.dataset.seen || '').split(' ');
    if (!watches[0] || document.hidden) return;
    /* `seen` is what is shown: the stream tells at once what is newer. */
    stream = new EventSource('/live?' + watches.map((one, at) => `watch=${encodeURIComponent(one)}&seen=${seen[at] || ''}`).join('&'));
    stream.addEventListener('ready', () => { root.dataset.live = '1'; if (lost) { lost = false; status.hidden = true; } });
    stream.addEventListener('change', event => document.dispatchEvent(new CustomEvent('lamina:change', { detail: JSON.parse(event.data) })));
    stream.addEventListener('error', () => { delete root.dataset.live; if (!lost) { lost = true; tell(word('lost')); clearTimeout(fading); } });
  }
  document.addEventListener('visibilitychange', listen);
  addEventListener('pagehide', () => stream?.close());
  /* A list shows itself again when what it lists has changed. Views with their own way set data-live="own". */
  let due, shown = 0;
  const own = () => document.querySelector('[data-live=own]');
  document.addEventListener('lamina:change', () => {
    if (own() || document.activeElement.matches('textarea,input:not([type=range])')) return;
    clearTimeout(due); due = setTimeout(() => { if (!changing) { shown = Date.now(); refresh().catch(() => {}); } }, Math.max(150, shown + 2000 - Date.now()));
  });
  addEventListener('popstate', () => { if (own()) location.reload(); else refresh().catch(failed); });

  /* Keys. Letters are off in fields, or switched off. */
  const dialog = byId('keys'), onOff = byId('keys-switch'), off = () => localStorage.getItem('lamina-keys') === 'off';
  const mark = () => onOff.setAttribute('aria-checked', !off());
  onOff.addEventListener('click', () => { localStorage.setItem('lamina-keys', off() ? 'on' : 'off'); mark(); tell(word(off() ? 'keys_off' : 'keys_on')); });
  mark();
  function step(by) {
    const all = [...document.querySelectorAll('main [data-row], main .list > li > a, main .turns > li > details > summary')].filter(one => one.offsetParent);
    const at = all.indexOf(document.activeElement), next = all[at < 0 && by < 0 ? all.length - 1 : at + by];
    next?.focus(); next?.scrollIntoView({ block: 'nearest' });
  }
  let going = 0;
  document.addEventListener('keydown', event => {
    const { key, target } = event, field = target.closest('input:not([type=range]):not([type=checkbox]),textarea,select,[contenteditable]');
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (field && key === 'Escape') field.blur();
    if (field || dialog.open || off() && key.length === 1) return;
    const went = Date.now() - going < 1500, named = `="${CSS.escape(key)}"]`;
    going = key === 'g' && !went ? Date.now() : 0;
    if (went) { const view = document.querySelector(`.top nav [data-key${named}`); if (view) { event.preventDefault(); location.href = view.href; } }
    else if (key === '/') { event.preventDefault(); document.querySelector('.search input').focus(); }
    else if (key === '?') dialog.showModal();
    else if (key === 'j' || key === 'k') { event.preventDefault(); step(key === 'j' ? 1 : -1); }
    else if (key === 'o' && target.matches('summary')) target.click();
    else if (key === 'u' && !status.hidden) byId('undo')?.click();
    else (target.closest('[data-decide]') || main).querySelector(`[data-hotkey${named}:not([disabled])`)?.click();
    if (!went) document.dispatchEvent(new CustomEvent('lamina:key', { detail: event }));
  });

  /* The language is in a cookie; a copied address leaves the reader theirs. */
  const here = new URL(location.href);
  if (here.searchParams.has('lang')) { here.searchParams.delete('lang'); history.replaceState({}, '', here); }
  /* The card of the open memory, if the list is beside it. */
  if (innerWidth > 900) document.querySelector('.card[aria-current]')?.scrollIntoView({ block: 'nearest' });
  if (byId('opening')) location.reload();
  listen();
  window.lamina = { fetchPage, refresh, tell, word };
})();

/* The session view: draws the chart, shows the selected request, opens turns, and follows a session that runs. */
(function () {
  'use strict';
  const { word, tell, fetchPart, refresh } = window.lamina;
  const number = value => Math.round(value).toLocaleString('en-US');
  const share = (part, whole) => { const value = whole ? 100 * part / whole : 0; return value < 9.95 ? value.toFixed(1) + '%' : Math.round(value) + '%'; };
  const short = value => value >= 999500 ? (value / 1e6).toFixed(1) + 'M' : value >= 1e3 ? Math.round(value / 1e3) + 'k' : String(value);
  const money = value => { const usd = value / 1e6; return data.units ? word('units', { n: short(value) }) : usd > 0 && usd < .005 ? '<$0.01' : '$' + usd.toFixed(2); };
  const cost = one => one.includes(null) ? null : one[0] + one[1] + one[2];
  let data, chart, shell, base, wanted, loading, panels = new Map(), floor = null, unseen = 0;

  const time = i => new Date((data.start + data.time[i]) * 1000).toLocaleTimeString('en-GB');
  function sentence(i) {
    const largest = Object.entries(data.kinds).map(([name, values]) => [values[i], data.names[name]]).sort((a, b) => b[0] - a[0]).slice(0, 3).map(([value, name]) => `${name} ${number(value)}`).join(', ');
    const paid = cost(data.cost[i]);
    return `${word('request_of', { n: number(i + 1), count: number(data.tokens.length) })}, ${time(i)}: ${number(data.tokens[i])} ${word('tokens')}, ${word('from_cache', { share: share(data.read[i], data.tokens[i]) })}, ${paid === null ? word('price_unknown') : money(paid)}. ${word('largest', { list: largest })}`;
  }

  /* Numbers of a request that is pointed at: only texts and widths change, so nothing jumps. */
  function preview(i) {
    const panel = document.getElementById('req'); if (!panel) return;
    const set = (id, text) => { const node = document.getElementById(id); if (node) node.textContent = text; };
    set('hr', word('request_of', { n: number(i + 1), count: number(data.tokens.length) })); set('hrt', word('at_turn', { time: time(i), turn: data.turn[i] }));
    const total = document.getElementById('tot'), paid = cost(data.cost[i]);
    if (total) { total.querySelector('b').textContent = number(data.tokens[i]); const [cache, price] = total.querySelectorAll('span'); if (data.read.some(Boolean)) cache.textContent = word('from_cache', { share: share(data.read[i], data.tokens[i]) }); price.textContent = paid === null ? word('price_unknown') : money(paid); }
    const legend = document.getElementById('kinds'), most = +(legend?.dataset.most || 1);
    for (const row of legend?.querySelectorAll('button') || []) {
      const value = data.kinds[row.dataset.kind]?.[i] || 0;
      row.classList.toggle('z', !value); row.setAttribute('aria-pressed', floor === row.dataset.kind);
      row.querySelector('.num').textContent = number(value); row.querySelector('.pc').textContent = value ? share(value, data.tokens[i]) : '';
      row.querySelector('rect').setAttribute('width', value ? Math.max(1, value / most * 100).toFixed(1) : 0);
    }
  }

  /* The panel of a request, then its blocks. Only the newest selection is shown; the address follows it. */
  function choose(i) {
    const url = new URL(location.href); url.searchParams.set('r', i + 1); history.replaceState({}, '', url);
    shell.dataset.request = i + 1; follow(i); clearTimeout(loading); wanted = i + 1;
    loading = setTimeout(() => show(i + 1), panels.has(i + 1) ? 0 : 20);
  }
  async function show(request) {
    let markup = panels.get(request);
    if (!markup) {
      try { markup = await (await fetch(`${base}/requests/${request}/panel`)).text(); } catch { tell(word('failed')); return; }
      panels.set(request, markup); if (panels.size > 60) panels.delete(panels.keys().next().value);
    }
    if (wanted !== request) return;
    const old = document.getElementById('req'), fresh = window.lamina.parse(markup).querySelector('#req');
    if (!fresh) return;
    const focus = document.activeElement?.getAttribute?.('aria-label'), within = old?.contains(document.activeElement), top = old?.scrollTop || 0;
    old?.replaceWith(fresh); fresh.scrollTop = top;
    if (within && focus) [...fresh.querySelectorAll('[aria-label]')].find(one => one.getAttribute('aria-label') === focus)?.focus();
    legend(); preview(request - 1); blocks(request);
  }
  async function blocks(request) {
    const place = document.getElementById('blocks'); if (!place) return;
    await new Promise(done => setTimeout(done, 40));
    if (wanted !== request || !place.isConnected) return;
    try {
      const part = await fetchPart(place.dataset.loadNow);
      if (wanted !== request) return;
      const strip = part.querySelector('svg.strip'); if (strip) { document.querySelector('#req svg.strip')?.replaceWith(strip); }
      place.replaceChildren(part); place.removeAttribute('aria-busy');
    } catch { place.textContent = word('failed'); }
  }
  function legend() {
    for (const row of document.querySelectorAll('#kinds button')) {
      row.addEventListener('click', () => { floor = floor === row.dataset.kind ? null : row.dataset.kind; chart.floor(floor); preview(chart.at); });
      row.addEventListener('pointerenter', () => chart.highlight(data.kinds[row.dataset.kind] ? row.dataset.kind : null));
      row.addEventListener('pointerleave', () => chart.highlight(null));
    }
  }

  /* The turn of the selected request is marked in the conversation. */
  function follow(i) {
    for (const one of document.querySelectorAll('.turns > li')) one.classList.toggle('cur', +one.dataset.first <= i + 1 && i + 1 <= +one.dataset.last && +one.dataset.first > 0);
    for (const one of document.querySelectorAll('.rq')) one.classList.toggle('on', +one.dataset.r === i + 1);
  }
  function openTurn(turn) { const one = document.getElementById('d' + turn); if (one) { one.open = true; one.scrollIntoView({ block: 'start' }); one.querySelector('summary').focus({ preventScroll: true }); } }

  async function load(first) {
    const answer = await fetch(document.getElementById('chart').dataset.series + (first > 1 ? '?from=' + first : ''));
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  }
  /* New requests behind those that are known. */
  function joined(more) {
    if (!data || more.first === 1) return more;
    const keep = more.first - 1, made = { ...more, first: 1, kinds: {} };
    for (const key of ['turn', 'time', 'tokens', 'read', 'cost', 'pause']) made[key] = [...data[key].slice(0, keep), ...more[key]];
    for (const name of Object.keys(more.names)) {
      const before = data.kinds[name], after = more.kinds[name];
      if (before || after) made.kinds[name] = [...(before ? before.slice(0, keep) : new Array(keep).fill(0)), ...(after || new Array(more.tokens.length).fill(0))];
    }
    return made;
  }

  async function start() {
    shell = document.getElementById('session'); if (!shell) return;
    base = shell.dataset.session; panels = new Map(); chart?.close(); chart = undefined;
    const place = document.getElementById('chart'), turn = /^#t(\d+)$/.exec(location.hash);
    if (turn) openTurn(turn[1]);
    try { data = await load(1); } catch { return; }
    if (!data.tokens.length) return;
    const begin = Math.min(data.tokens.length, +shell.dataset.request || data.tokens.length) - 1;
    wanted = begin + 1;
    chart = window.laminaChart(place, data, { start: begin, word, label: sentence, onHover: preview, onSelect: choose });
    legend(); follow(begin); blocks(begin + 1);
    if (turn) document.getElementById('d' + turn[1])?.scrollIntoView({ block: 'start' });  /* the chart has its height now */
  }

  /* A session that runs: the end stays in view for whoever looks at it; for others it waits below. */
  let busy = false, again = false, last = null;
  async function grow(state) {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const replaced = gone || last && (state[0] < last[0] || state[2] !== last[2]); last = state; gone = false;
      if (replaced || !chart) { await refresh(); await start(); if (replaced) tell(word('replaced')); return; }
      const known = data.tokens.length, sticky = chart.at === known - 1, bottom = innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
      const more = await load(known); const fresh = joined(more);
      if (fresh.tokens.length < known) { await refresh(); await start(); tell(word('replaced')); return; }
      data = fresh; panels.delete(known);
      const found = window.lamina.parse(await (await fetch(location.href)).text());
      for (const id of ['figs', 'meta']) { const next = found.getElementById(id); if (next) document.getElementById(id)?.replaceWith(next); }
      const list = document.getElementById('turns'), head = found.querySelector('#conv header [role=status]');
      if (head) document.querySelector('#conv header [role=status]').textContent = head.textContent;
      let added = 0;
      for (const row of found.querySelectorAll('#turns > li')) {
        const old = document.getElementById(row.id);
        if (!old) { list.append(row); added += 1; continue; }
        if (old.dataset.last === row.dataset.last && old.querySelector('.sub').textContent === row.querySelector('.sub').textContent) continue;
        const details = old.querySelector('details');
        old.dataset.first = row.dataset.first; old.dataset.last = row.dataset.last; details.querySelector('summary').replaceWith(row.querySelector('summary'));
        if (details.open) { const part = await fetchPart(details.dataset.load); details.querySelector('.ev')?.replaceWith(part); }
        else delete details.dataset.loaded, details.querySelector('.ev')?.remove();
      }
      chart.extend(data); if (sticky && data.tokens.length > known) chart.select(data.tokens.length - 1); else follow(chart.at);
      if (added && bottom) scrollTo(0, document.documentElement.scrollHeight); else if (added) waiting(added);
    } catch { /* the stream tells when the server is gone; a file that is gone says so itself */ }
    finally { busy = false; if (again) { again = false; grow(last); } }
  }
  /* The file is gone: what was read stays, and says that it is no longer live. */
  let gone = false;
  function lose() {
    tell(word('gone')); document.querySelector('#meta .live')?.remove();
    if (gone) return;
    const line = document.createElement('p'), link = document.createElement('a'); gone = true;
    line.className = 'notice'; link.href = '/sessions'; link.textContent = word('back'); line.append(word('gone') + ' ', link); shell.prepend(line);
  }
  function waiting(added) {
    unseen += added;
    let button = document.getElementById('new-below');
    if (!button) {
      button = document.createElement('button'); button.id = 'new-below'; button.type = 'button'; button.className = 'btn main new-below';
      button.addEventListener('click', () => { unseen = 0; button.remove(); document.querySelector('.turns > li:last-child')?.scrollIntoView({ block: 'end' }); });
      document.getElementById('main').append(button);
    }
    button.textContent = word('new_below', { n: unseen });
  }
  document.addEventListener('lamina:change', event => {
    if (!document.getElementById('session')) return;
    if (event.detail.state === null) { again = false; lose(); } else grow(event.detail.state);
  });
  document.addEventListener('click', async event => {
    const link = event.target.closest('[data-select],[data-turn],[data-axis],#as-table'); if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.dataset.select && chart) { event.preventDefault(); chart.select(link.dataset.select - 1); }
    else if (link.dataset.turn && document.getElementById('t' + link.dataset.turn)) { event.preventDefault(); openTurn(link.dataset.turn); }
    else if (link.dataset.axis && chart) { for (const one of document.querySelectorAll('[data-axis]')) one.setAttribute('aria-pressed', one === link); chart.axis(link.dataset.axis); }
    else if (link.id === 'as-table') {
      event.preventDefault(); const table = document.getElementById('table'), shown = table.hidden;
      if (shown) table.replaceChildren(await fetchPart(link.href));
      table.hidden = !shown; document.getElementById('chart').hidden = shown; link.dataset.label ||= link.textContent; link.textContent = shown ? word('show_chart') : link.dataset.label;
    }
  });
  document.addEventListener('lamina:part', () => { if (chart) follow(chart.at); });
  /* The filter of the conversation answers as one types. */
  let typing;
  const filter = form => { const url = new URL(location.href); for (const name of ['find', 'errors', 'turns']) url.searchParams.delete(name); for (const [name, value] of new FormData(form)) if (value) url.searchParams.set(name, value); return url; };
  async function refilter(form) {
    const url = filter(form), found = window.lamina.parse(await (await fetch(url)).text()).getElementById('conv'), old = document.getElementById('conv');
    history.replaceState({}, '', url);
    for (const child of [...old.children].slice(1)) child.remove();
    old.append(...[...found.children].slice(1)); old.querySelector('header [role=status]').textContent = found.querySelector('header [role=status]').textContent;
    if (chart) follow(chart.at);
  }
  document.addEventListener('input', event => { const form = event.target.closest('#filter'); if (form) { clearTimeout(typing); typing = setTimeout(() => refilter(form), 200); } });
  document.addEventListener('submit', event => { if (event.target.id === 'filter') { event.preventDefault(); refilter(event.target); } });
  start();
})();

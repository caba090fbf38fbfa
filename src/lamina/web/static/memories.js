/* Memories: search as you type, and keys that mean the proposal or pair that has the focus. */
(function () {
  'use strict';
  let due, number = 0;
  async function search(form) {
    const url = new URL(form.action); url.search = new URLSearchParams(new FormData(form)).toString();
    const mine = ++number, part = await lamina.fetchPart(url);
    const next = part.querySelector('#memory-found'), now = document.getElementById('memory-found');
    if (mine !== number || !next || !now) return;
    now.replaceWith(next); history.replaceState({}, '', url);
  }
  /* The card of the open memory, if the list stands beside it. */
  const card = innerWidth > 900 && document.querySelector('.card[aria-current]'), box = card && card.getBoundingClientRect();
  if (box && (box.top < 56 || box.bottom > innerHeight)) card.scrollIntoView({ block: 'center' });
  document.addEventListener('input', event => {
    const form = event.target.closest('#memory-search');
    if (form) { clearTimeout(due); due = setTimeout(() => search(form), 120); }
  });
  document.addEventListener('submit', event => {
    if (event.target.matches('#memory-search')) { event.preventDefault(); clearTimeout(due); search(event.target); }
  });
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest('input,textarea,select') || localStorage.getItem('lamina-keys') === 'off') return;
    const within = event.target.closest('[data-decide]');
    const button = within?.querySelector(`[data-hotkey="${CSS.escape(event.key)}"]`);
    if (button) { event.preventDefault(); event.stopImmediatePropagation(); button.click(); }
  }, true);
})();

/* Runs before the page is painted: the theme that was chosen last, and the mark that scripts work. */
(function () {
  'use strict';
  const root = document.documentElement;
  root.classList.add('js');
  const kept = localStorage.getItem('lamina-theme');
  if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;
  document.addEventListener('DOMContentLoaded', () => document.querySelector('.theme')?.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme:dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
    localStorage.setItem('lamina-theme', root.dataset.theme);
    document.dispatchEvent(new Event('lamina:theme'));
  }));
})();

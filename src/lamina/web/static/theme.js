/* Runs before the page is painted: the mark that scripts work, and the theme that was chosen last, here or in another tab. */
const root = document.documentElement, dress = () => { root.dataset.theme = localStorage['lamina-theme'] || ''; };
root.classList.add('js');
dress(); addEventListener('storage', dress);

/* Runs before the page is painted: the theme that was chosen last, and the mark that scripts work. */
document.documentElement.classList.add('js');
document.documentElement.dataset.theme = localStorage['lamina-theme'] || '';

/* The overview: money by day, drawn by the chart of the sessions. A column is a day, and its figures stand below the chart. */
(function () {
  'use strict';
  const money = micro => '$' + (micro / 1e6).toFixed(micro < 1e7 ? 2 : 0);
  let chart;
  function start() {
    const root = document.getElementById('days'), line = document.getElementById('day'); chart?.close(); chart = null;
    if (!root) return;
    const data = JSON.parse(root.dataset.series), show = i => { line.textContent = data.sentences[i]; };
    chart = window.laminaChart(root, data, { start: data.tokens.length - 1, word: window.lamina.word, amount: data.units ? undefined : money, label: i => data.sentences[i], onHover: show, onSelect: show });
  }
  document.addEventListener('lamina:content', start); start();
})();

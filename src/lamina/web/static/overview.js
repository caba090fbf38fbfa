/* The overview: money by day, drawn by the chart of the sessions. A column is a day; its figures are below the chart. */
const { byId, on, word } = window.lamina, money = micro => '$' + (micro / 1e6).toFixed(micro < 1e7 ? 2 : 0);
let chart, chosen = null;  /* the day that was chosen; null is the newest */
function start() {
	const root = byId('days'), line = byId('day');
	chart?.close();
	if (!root) return;
	const data = JSON.parse(root.dataset.series), newest = data.columns.length - 1, kept = data.columns.indexOf(chosen);
	const show = i => { line.textContent = data.sentences[i]; if (chart) chart.scrub.ariaValueText = data.sentences[i]; };
	const choose = i => { chosen = i === newest ? null : data.columns[i]; show(i); };
	chart = laminaChart(root, data, { start: kept < 0 ? newest : kept, word, amount: data.units ? undefined : money, onHover: show, onSelect: choose });
	show(chart.at);
}
on('lamina:content', start); start();

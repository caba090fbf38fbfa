"""Checks of what a browser shows: contrast of each text with its ground, names and sizes of controls."""

from __future__ import annotations

from playwright.sync_api import Page

CONTRAST = """() => {
  const parse = text => { const m = text.match(/[\\d.]+/g).map(Number); return m.length < 4 ? [...m, 1] : m; };
  const over = (a, b) => [0, 1, 2].map(i => a[i] * a[3] + b[i] * (1 - a[3])).concat(1);
  const part = v => v <= 10.02 ? v / 3294.6 : ((v / 255 + .055) / 1.055) ** 2.4;
  const light = c => .2126 * part(c[0]) + .7152 * part(c[1]) + .0722 * part(c[2]);
  const ground = e => {
    const stack = [[255, 255, 255, 1]];
    for (; e; e = e.parentElement) { stack.splice(1, 0, parse(getComputedStyle(e).backgroundColor)); if (stack[1][3] === 1) break; }
    return stack.reduce((below, one) => over(one, below));
  };
  const found = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walk.nextNode());) {
    const e = node.parentElement;
    if (!node.data.trim() || e.closest('.sr,noscript,title,script')) continue;
    if (!e.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    const style = getComputedStyle(e), paper = ground(e), ink = over(parse(e.closest('svg') ? style.fill : style.color), paper);
    const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) found.add(`${ratio.toFixed(2)} ${node.data.trim().slice(0, 40)} (${e.className?.baseVal ?? e.className})`);
  }
  return [...found];
}"""

CONTROLS = """() => {
  const found = [];
  for (const e of document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary')) {
    if (!e.checkVisibility({ checkVisibilityCSS: true }) || e.matches('.skip')) continue;
    const box = e.getBoundingClientRect(), label = e.labels?.[0];
    const name = (e.getAttribute('aria-label') || e.innerText || label?.innerText || e.title || e.placeholder || '').trim();
    const kind = `${e.tagName.toLowerCase()}.${e.className} ${name.slice(0, 30)}`;
    if (!name) found.push(`without a name: ${kind}`);
    const prose = e.matches('a') && e.parentElement.matches('p:not(.crumb),li.soft') && getComputedStyle(e).display === 'inline';
    if (!prose && (box.height < 23.5 || box.width < 23.5)) found.push(`${Math.round(box.width)}x${Math.round(box.height)}: ${kind}`);
  }
  return found;
}"""


def bad_contrast(page: Page) -> list[str]:
    """Return the texts whose contrast with their ground is below 4.5."""
    found: list[str] = page.evaluate(CONTRAST)
    return found


def small_or_unnamed(page: Page) -> list[str]:
    """Return the controls without a name, and those smaller than 24 pixels. A link within a sentence may be as low as its line."""
    found: list[str] = page.evaluate(CONTROLS)
    return found

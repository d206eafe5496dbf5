// keys.js - everything that the keyboard does outside of fields.

const isTyping = target => target.matches('input, select, textarea') || target.isContentEditable;

function move(step) {
  const hits = [...$('results').children], here = hits.indexOf(document.activeElement.closest('.hit'));
  if (!hits.length) return;
  if (here === 0 && step < 0) { $('query').focus(); return; }
  hits[Math.max(0, Math.min(hits.length - 1, here + step))].focus();
}

function current() { return document.activeElement.closest('.hit'); }

const actions = {
  '/': () => { $('query').focus(); $('query').select(); },
  j: () => move(1), ArrowDown: () => move(1),
  k: () => move(-1), ArrowUp: () => move(-1),
  s: () => current() && current().querySelector('.similar').click(),
  v: () => current() && current().querySelector('.view') && current().querySelector('.view').click(),
  x: () => current() && current().querySelector('.rest') && current().querySelector('.rest').click(),
  m: () => showView($('view-map').hidden ? 'map' : 'search'),
  t: nextTheme,
  '?': () => $('keys').showModal(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  if (event.key === 'Escape' && ['file', 'record'].includes(document.body.dataset.view)) {
    $(`${document.body.dataset.view}-back`).click();
  } else if (event.key === 'Escape') {
    clearOne();
    $('query').focus();
  } else if (isTyping(event.target)) {
    if (event.key !== 'ArrowDown' || event.target !== $('query')) return;
    move(1);
  } else if (event.key === 'Enter') {
    const open = document.activeElement === current() && current() && current().querySelector('.open, .record');
    if (!open) return;
    open.click();
  } else if (actions[event.key]) {
    actions[event.key]();
  } else {
    return;
  }
  event.preventDefault();
}

function startKeys() {
  document.addEventListener('keydown', onKey);
  $('help').onclick = actions['?'];
}

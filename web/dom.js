// dom.js - elements and figures. Text of the store goes into text nodes only, never into markup.

const $ = id => document.getElementById(id);

// h('a', {href: '/x', onclick: fn}, 'text', element, ...): null and false children are left out
function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter(c => c !== null && c !== undefined && c !== false));
  return element;
}

const count = n => Number(n).toLocaleString('en-US');
const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many || one + 's'}`;

function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let at = 0;
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at++; }
  return `${n.toFixed(n < 10 && at ? 1 : 0)} ${units[at]}`;
}

function ago(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86400)} days ago`;
}

// Keeps the choice, if it is still there
function fillSelect(select, options) {
  const was = select.value, key = JSON.stringify(options);
  if (select.dataset.key === key) return;
  select.dataset.key = key;
  select.replaceChildren(...options.map(([value, text]) => h('option', {value}, text)));
  if (options.some(([value]) => value === was)) select.value = was;
}

function later(ms, fn) {
  let timer = 0;
  return (...args) => { clearTimeout(timer); timer = setTimeout(fn, ms, ...args); };
}

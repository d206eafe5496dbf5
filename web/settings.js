// settings.js - what is kept in this browser: theme and editor.

const themes = ['auto', 'light', 'dark'];

function kept(name, fallback) {
  try { return localStorage.getItem('lode-' + name) || fallback; } catch { return fallback; }
}
function keep(name, value) {
  try { localStorage.setItem('lode-' + name, value); } catch { /* private windows: for this time only */ }
}

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $('theme').textContent = `Theme: ${theme}`;
  $('theme').setAttribute('aria-label', `Theme: ${theme}. Change it`);
  keep('theme', theme);
  document.dispatchEvent(new Event('themed'));
}
function nextTheme() { setTheme(themes[(themes.indexOf(kept('theme', 'auto')) + 1) % themes.length]); }

function startSettings() {
  setTheme(themes.includes(kept('theme')) ? kept('theme') : 'auto');
  $('theme').onclick = nextTheme;
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => document.dispatchEvent(new Event('themed')));
  const editor = $('editor');
  if ([...editor.options].some(o => o.value === kept('editor'))) editor.value = kept('editor');
  editor.onchange = () => { keep('editor', editor.value); document.dispatchEvent(new Event('editor')); };
}

// The address that makes the editor open a file
function editorLink(root, path, line) {
  const full = (root.endsWith('/') ? root : root + '/') + path;
  return $('editor').value.replace('{path}', encodeURI(full).replace(/[?#]/g, encodeURIComponent)).replace('{line}', line);
}

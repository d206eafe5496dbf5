// app.js - views, and the beginning of everything.

const VIEWS = ['search', 'file', 'record', 'map'];

function showView(name) {
  const was = document.body.dataset.view;
  document.body.dataset.view = name; // styles and filters depend on it
  for (const view of VIEWS) $('view-' + view).hidden = view !== name;
  $('tab-search').setAttribute('aria-pressed', String(name === 'search'));
  $('tab-map').setAttribute('aria-pressed', String(name === 'map'));
  if (name === 'map' && state.source && map.collection !== collectionOf()) loadMap(collectionOf());
  if (name === 'map') draw();
  if (was !== name && (name === 'map' || was === 'map')) remember();
}

$('tab-search').onclick = () => ['file', 'record'].includes(document.body.dataset.view) ? leaveFile() : showView('search');
$('tab-map').onclick = () => showView('map');
startSettings();
startMap();
startKeys();
startSearch();
startFile();
startRecord();
startWork();
startHealth();
if (!recallFile() && !recallRecord() && !recallMap()) { showView('search'); $('query').focus(); }

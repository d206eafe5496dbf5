// app.js - views, and the beginning of everything.

function showView(name) {
  const isMap = name === 'map', isFile = name === 'file';
  document.body.dataset.view = name; // the map has filters of its own
  $('view-search').hidden = isMap || isFile;
  $('view-file').hidden = !isFile;
  $('view-map').hidden = !isMap;
  $('tab-search').setAttribute('aria-pressed', String(!isMap && !isFile));
  $('tab-map').setAttribute('aria-pressed', String(isMap));
  if (isMap && state.source && map.collection !== collectionOf()) loadMap(collectionOf());
  if (isMap) draw();
}

$('tab-search').onclick = () => document.body.dataset.view === 'file' ? leaveFile() : showView('search');
$('tab-map').onclick = () => showView('map');
startSettings();
startMap();
startKeys();
startSearch();
startFile();
startWork();
startHealth();
if (!recallFile()) $('query').focus();

// app.js - views, and the beginning of everything.

function showView(name) {
  const isMap = name === 'map';
  document.body.dataset.view = name; // the map has filters of its own
  $('view-search').hidden = isMap;
  $('view-map').hidden = !isMap;
  $('tab-search').setAttribute('aria-pressed', String(!isMap));
  $('tab-map').setAttribute('aria-pressed', String(isMap));
  if (isMap && state.source && map.collection !== collectionOf()) loadMap(collectionOf());
  if (isMap) draw();
}

$('tab-search').onclick = () => showView('search');
$('tab-map').onclick = () => showView('map');
startSettings();
startMap();
startKeys();
startSearch();
startHealth();
$('query').focus();

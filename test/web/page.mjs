// page.mjs PART URL CHROMIUM PROFILE PICTURES WORK - one part of test/shell/web.sh, in a Chromium of its own. Ends with "N passed, N failed".
import {chromium} from 'playwright-core';
import {execFileSync, spawn} from 'node:child_process';
import {readFileSync} from 'node:fs';

const [part, url, executablePath, profile, pictures, work] = process.argv.slice(2);
let passed = 0, failed = 0;
const check = (name, holds, told) => {
  if (holds) passed++; else failed++;
  console.log(`${holds ? 'ok    ' : 'FAILED'} ${part}: ${name}${holds || told === undefined ? '' : `: ${JSON.stringify(told)}`}`);
};

const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, viewport: {width: 1280, height: 820}, colorScheme: 'light',
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
context.setDefaultTimeout(30000 * Number(process.env.LODE_TEST_PATIENCE || 1));
const page = context.pages()[0] || await context.newPage();
const complaints = [], asked = new Set();
page.on('pageerror', error => complaints.push(error.message));
page.on('console', message => { if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) complaints.push(message.text()); });
page.on('request', request => asked.add(new URL(request.url()).host || new URL(request.url()).protocol));

const text = selector => page.locator(selector).first().textContent();
const picture = name => page.screenshot({path: `${pictures}/${name}.png`});
const hits = () => page.locator('.hit').count();
const settled = condition => page.waitForFunction(condition);
const focused = () => page.evaluate(() => document.activeElement.id || document.activeElement.className || document.activeElement.tagName);
// What axe finds in the page as it is; nothing where npm has no axe
const axe = await import('axe-core').then(module => module.default.source, () => null);
async function audit(name) {
  if (!axe) return;
  await page.evaluate(`${axe}; undefined`); // not a script of the page: its policy forbids others
  const found = await page.evaluate(() => axe.run(document, {resultTypes: ['violations']}).then(result =>
    result.violations.map(v => `${v.id}: ${v.nodes.map(n => n.target.join(' ')).slice(0, 4).join(', ')}`)));
  check(`axe finds nothing: ${name}`, found.length === 0, found);
}
// The same of a state that the part `widths` does not come to: with LODE_TEST_FULL at the widths of phone, tablet and screen, light and dark
async function auditState(name) {
  if (!process.env.LODE_TEST_FULL) return audit(name);
  const size = page.viewportSize(), dark = await page.evaluate(() => matchMedia('(prefers-color-scheme: dark)').matches);
  for (const [width, height] of [[390, 844], [820, 1180], [1440, 900]]) {
    await page.setViewportSize({width, height});
    for (const colorScheme of ['light', 'dark']) {
      await page.emulateMedia({colorScheme});
      await audit(`${name}, ${width} wide, ${colorScheme}`);
    }
  }
  await page.setViewportSize(size);
  await page.emulateMedia({colorScheme: dark ? 'dark' : 'light'});
}
async function search(words) {
  await page.fill('#query', words);
  await page.waitForFunction(w => location.hash.includes(new URLSearchParams({q: w}).toString()) && document.getElementById('results').ariaBusy === 'false', words);
}

const parts = {
  async code() {
    await page.goto(url);
    await page.waitForSelector('#facts dt');
    check('the search field has the focus', await focused() === 'query', await focused());
    check('health says well', await text('#pulse') === 'well', await text('#pulse'));
    check('files are counted', /Files\D*\d+/.test(await text('#facts')), await text('#facts'));
    await search('parse a json number');
    check('something is found', await hits() > 0);
    check('words are marked', await page.locator('.hit mark').count() > 0);
    check('the best is the JSON parser', /json|number/.test(await text('.hit h3')), await text('.hit h3'));
    const link = await page.locator('.hit .open').first().getAttribute('href');
    check('the link opens the editor', /^vscode:\/\/file\/.*\/project\/base\/.*:\d+$/.test(link), link);
    await picture('code');
    await auditState('search');

    await search('turning_text_function');
    check('a file that changed is marked', /changed/.test(await text('.hit .stale')), await text('.hit .stale'));
    check('text cannot turn the page', /\\u\{202e\}/.test(await text('.hit pre')) && !/\u202e/.test(await text('.hit')), await text('.hit pre'));
    check('an index that is behind is said', /changed since they were indexed/.test(await text('#said')), await text('#said'));
    await search('zuvokal brimtex florbim');
    check('a weak answer is said', /Nothing matches well/.test(await text('#said')) || await hits() === 0, await text('#said'));
    check('weak hits are marked', await page.locator('.hit').count() === await page.locator('.hit .weak').count());
    await page.selectOption('#mode', 'exact');
    await search('utf8_valid(');
    check('text as it stands', await hits() > 0 && /utf8_valid\(/.test(await text('.hit pre')), await text('#said'));
    await search('Utf8_Valid(');
    check('its case counts', await hits() === 0 && /Nothing found/.test(await text('#said')), await text('#said'));
    await page.selectOption('#mode', 'regex');
    await search('utf8_(valid|nothing)\\(');
    check('a pattern', await hits() > 0 && /utf8_valid\(/.test(await text('.hit pre')), await text('#said'));
    await search('(valid');
    check('a wrong pattern is explained', await hits() === 0 && /is wrong at byte/.test(await text('#said')), await text('#said'));
    await page.selectOption('#mode', '');
    await search('parse a json number');

    // as you type: every state of the field ends with the answer to the last
    await page.fill('#query', '');
    await page.locator('#query').pressSequentially('utf8 valid', {delay: 20});
    await settled(() => /utf8/.test(document.querySelector('.hit h3')?.textContent || ''));
    check('search as you type', true);

    await page.selectOption('#language', 'markdown');
    await settled(() => document.querySelectorAll('.hit').length > 0 && [...document.querySelectorAll('.hit h3')].every(e => /\.md:/.test(e.textContent)));
    check('only the language asked for', true);
    await page.selectOption('#language', '');
    await page.fill('#path', 'query');
    await settled(() => document.querySelectorAll('.hit').length > 0 && [...document.querySelectorAll('.hit h3')].every(e => e.textContent.startsWith('query/')));
    check('only the path asked for', true);
    await page.reload();
    await settled(() => document.querySelectorAll('.hit').length > 0);
    check('a reload finds the question again', await page.inputValue('#path') === 'query' && await page.inputValue('#query') === 'utf8 valid');
    await page.fill('#path', '');

    // a file: address, lines, definitions, names, and back to the results as they were
    await search('hash of a string');
    const before = await text('#results');
    await page.locator('.hit .view').first().click();
    await page.waitForSelector('#file-text .here');
    check('a file has an address', /^#file=[^&]+&lines=\d+/.test(new URL(page.url()).hash), page.url());
    check('the hit is marked', await page.locator('#file-text .here').count() > 0 && await page.locator('#file-text .here').first().isVisible());
    const numbers = await page.locator('#file-text .at').allTextContents();
    check('every line has its number', numbers.length > 5 && numbers.every((n, i) => Number(n) === i + 1), numbers.slice(0, 5));
    const real = readFileSync(`${process.argv[7]}/project/${await page.evaluate(() => file.path)}`, 'utf8').replace(/\n$/, '').split('\n');
    check('it is the file', JSON.stringify(await page.evaluate(() => file.lines)) === JSON.stringify(real));
    check('it has colours', await page.locator('#file-text .c-comment').count() > 0 && await page.locator('#file-text .c-word').count() > 0);
    check('its definitions are listed', await page.locator('#file-outline a').count() > 0);
    await picture('file');
    await auditState('file');
    await page.locator('#file-outline button').first().click();
    await page.waitForSelector('#file-names h3');
    check('a name is looked up', /Defined \([1-9]/.test(await text('#file-names')), await text('#file-names'));
    const address = page.url();
    await page.keyboard.press('Escape');
    await page.waitForSelector('#view-search:not([hidden])');
    check('back to the same results', await text('#results') === before);
    await page.goto('about:blank');
    await page.goto(address);
    await page.waitForSelector('#file-text .here');
    check('the address opens the file again', true);
    // very long files and text that turns
    await page.goto(url + '#file=turning.c');
    await settled(() => /turning_text/.test(document.getElementById('file-text').textContent));
    check('text cannot turn a file', /\\u\{202e\}/.test(await text('#file-text')) && !/\u202e/.test(await text('#file-text')));
    await page.goto(url + '#file=long.c&lines=15000');
    await settled(() => document.getElementById('L15000'));
    check('of a long file what is around is shown', /^Lines 9,000 to 20,999 of a very long file/.test(await text('#file-said')) && await page.locator('#file-text .row').count() === 12000, await text('#file-said'));
    check('and it is the right line', /int long_15000;/.test(await text('#L15000')) && await page.locator('#L15000').isVisible(), await text('#L15000'));
    await page.goto(url + '#file=long.c&lines=1');
    await settled(() => document.getElementById('L1'));
    check('another part is read when it is asked for', /^Lines 1 to 12,000 of/.test(await text('#file-said')), await text('#file-said'));
    await page.goto(url + '#file=wide.md');
    await settled(() => /more characters/.test(document.getElementById('file-text').textContent));
    check('a line of a hundred thousand characters is cut', (await text('#file-text')).length < 10000, (await text('#file-text')).length);
    check('files of the machine are not read', await page.evaluate(() => call('read', {at: 'turning.c'}).then(() => 'read', error => error.status)) === 'UNSUPPORTED');
    await page.goto(address);
    await page.waitForSelector('#file-text .here');
    await page.setViewportSize({width: 390, height: 800});
    check('a file fits a phone', await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), await page.evaluate(() => document.documentElement.scrollWidth));
    await page.emulateMedia({colorScheme: 'dark'});
    await picture('file-phone-dark');
    await page.emulateMedia({colorScheme: 'light'});
    await page.setViewportSize({width: 1280, height: 820});
    await page.goto(url);
    await page.waitForSelector('#facts dt');

    // keys
    await search('hash of a string');
    await page.focus('#query');
    await page.keyboard.press('ArrowDown');
    check('arrow down goes to the first result', /\bhit\b/.test(await focused()), await focused());
    const at = () => page.evaluate(() => [...document.querySelectorAll('.hit')].indexOf(document.activeElement));
    await page.keyboard.press('j');
    await page.keyboard.press('j');
    check('j goes down', await at() === 2, await at());
    await page.keyboard.press('k');
    check('k goes up', await at() === 1, await at());
    await page.evaluate(() => document.addEventListener('click', e => { if (e.target.matches('.open')) { window.opened = e.target.href; e.preventDefault(); } }, true));
    await page.keyboard.press('Enter');
    const opened = await page.evaluate(() => window.opened);
    check('Enter opens the result', /^vscode:/.test(opened || ''), opened);
    await page.keyboard.press('s');
    await page.waitForSelector('#like:not([hidden])');
    await settled(() => document.querySelectorAll('.hit').length > 0);
    check('s searches for what is similar', /Similar to/.test(await text('#like')));
    await page.keyboard.press('Escape');
    await page.waitForSelector('#like', {state: 'hidden'});
    check('Esc ends that first', await page.inputValue('#query') !== '' && await focused() === 'query');
    await page.keyboard.press('Escape');
    check('Esc clears the words next', await page.inputValue('#query') === '');
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('/');
    check('/ goes to the field', await focused() === 'query');
    await page.evaluate(() => document.activeElement.blur());
    await page.keyboard.press('?');
    check('? shows the keys', await page.locator('#keys').isVisible());
    await picture('keys');
    await auditState('keys');
    await page.keyboard.press('Escape');
    check('Esc closes them', !await page.locator('#keys').isVisible());

    // themes
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).map(Number)[0]);
    check('light as the system is', await ground() > 200);
    await page.emulateMedia({colorScheme: 'dark'});
    check('dark as the system is', await ground() < 60, await ground());
    await search('checksum of a page');
    await picture('dark');
    await auditState('dark');
    await page.click('#theme');
    check('light by choice', await ground() > 200);
    await page.reload();
    check('the choice is kept', await ground() > 200);
    await page.click('#theme');
    await page.emulateMedia({colorScheme: 'light'});
    check('dark by choice', await ground() < 60);

    // background work, as `status` and `db stats` tell of it
    const work = await page.evaluate(() => {
      health.status = {...health.status, activity: 'process 12: reading files, 5 of 10'};
      health.stats = {...health.stats, building: 1, build_done: 3, build_total: 4};
      showHealth();
      return [document.getElementById('pulse').textContent, ...[...document.querySelectorAll('#work progress')].map(p => p.position)];
    });
    check('work is shown with its progress', JSON.stringify(work) === '["working",0.5,0.75]', work);

    // what everybody needs: names, and a page that fits a phone
    const nameless = await page.evaluate(() => [...document.querySelectorAll('input, select, button')].filter(e =>
      !(e.labels && e.labels.length) && !e.getAttribute('aria-label') && !e.textContent.trim()).map(e => e.outerHTML));
    check('every control has a name', nameless.length === 0, nameless);
    await page.setViewportSize({width: 400, height: 800});
    check('nothing is wider than a phone', await page.evaluate(() => document.documentElement.scrollWidth <= 400), await page.evaluate(() => document.documentElement.scrollWidth));
    await picture('phone');
    await auditState('phone');
  },

  async notes() {
    await page.goto(url);
    await page.waitForSelector('#source option[value="in:notes"]', {state: 'attached'});
    await page.selectOption('#source', 'in:notes');
    await settled(() => document.querySelectorAll('.hit').length === 20);
    check('the first records are shown', /first 20/.test(await text('#said')), await text('#said'));
    await search('garden roses');
    check('records are found by their words', /^note-\d+$/.test(await text('.hit h3')) && /garden/.test(await text('.hit .prose')), await text('.hit'));
    check('markup of documents is text', await page.locator('.hit b').count() === 0 && /<b>is not bold/.test(await text('.hit .prose')));
    await page.fill('#where', '{"topic":"sea"');
    await page.waitForSelector('#where[aria-invalid="true"]');
    check('half a filter is not asked', /not JSON/.test(await text('#where-said')));
    await page.fill('#where', '{"topic":"sea"}');
    await search('number');
    await settled(() => document.querySelectorAll('.hit').length > 0 && [...document.querySelectorAll('.hit .prose')].every(e => /harbour/.test(e.textContent)));
    check('only what the filter matches', true);
    await page.locator('.hit button.tag', {hasText: 'year: 2'}).first().click();
    await settled(() => /"year":\d{4}/.test(document.getElementById('where').value));
    check('a click on metadata narrows the filter', /"topic":"sea"/.test(await page.inputValue('#where')), await page.inputValue('#where'));
    await page.fill('#where', '{"topic":{"$wrong":1}}');
    await page.waitForSelector('#said.bad');
    check('a refusal is told', (await text('#said')).length > 10, await text('#said'));
    await page.fill('#where', '');
    await page.fill('#query', '');
    await settled(() => document.querySelectorAll('.hit').length === 20);
    await page.click('#more');
    await settled(() => document.querySelectorAll('.hit').length === 40);
    check('more are shown when asked for', true);
    await page.locator('.hit .similar').first().click();
    await page.waitForSelector('#like:not([hidden])');
    await settled(() => [...document.querySelectorAll('.hit .prose')].slice(0, 10).every(e => /harbour/.test(e.textContent)));
    check('similar records are near ones, without itself', !(await page.locator('.hit h3').allTextContents()).includes('note-0'));
    await picture('notes');
    await auditState('collection');
    await page.keyboard.press('Escape');
    await page.locator('#collections li', {hasText: 'notes'}).locator('.browse').click();
    await settled(() => document.querySelectorAll('.hit').length === 20);
    await page.click('#more');
    await settled(() => document.querySelectorAll('.hit').length === 40);
    await page.click('#more');
    await settled(() => document.querySelectorAll('.hit').length === 60 && document.getElementById('more').hidden);
    check('a collection is looked through to its end', true);

    // narrowing by the values of a key
    await page.selectOption('#narrow', 'topic');
    await page.waitForSelector('#values button');
    check('the values of a key are counted', /food 20/.test(await text('#values')), await text('#values'));
    await page.locator('#values button', {hasText: 'plants'}).click();
    await settled(() => document.querySelectorAll('.hit').length === 20 && [...document.querySelectorAll('.hit .prose')].every(e => /garden/.test(e.textContent)));
    check('a click on one narrows', await page.inputValue('#where') === '{"topic":"plants"}', await page.inputValue('#where'));

    // one record
    await page.locator('.hit .record').first().click();
    await page.waitForSelector('#record-near a');
    check('a record has an address', /^#record=note-1&in=in%3Anotes$/.test(new URL(page.url()).hash), page.url());
    check('its text and metadata are shown', /garden with roses number 1/.test(await text('#record-text')) && /topic\s*plants/.test(await text('#record-metadata')), await text('#record-metadata'));
    check('its neighbours are near, without itself', await page.locator('#record-near li').count() === 8 && (await page.locator('#record-near p').allTextContents()).every(t => /garden/.test(t)) &&
      !(await page.locator('#record-near a').allTextContents()).includes('note-1'));
    check('a record has no filters around it', !await page.locator('#filters-collection').isVisible());
    await picture('record');
    await auditState('record');
    await page.locator('#record-near a').first().click();
    await settled(() => /^note-/.test(document.getElementById('record-title').textContent) && document.getElementById('record-title').textContent !== 'note-1');
    const near = page.url();
    await page.keyboard.press('Escape');
    await settled(() => document.getElementById('record-title').textContent === 'note-1');
    await page.keyboard.press('Escape');
    await page.waitForSelector('#view-search:not([hidden])');
    check('Esc comes back to the results', await hits() === 20 && await page.inputValue('#where') === '{"topic":"plants"}');
    await page.goto('about:blank');
    await page.goto(near);
    await page.waitForSelector('#record-near a');
    check('the address opens the record again', true);
    await page.goto(url + '#record=nobody&in=in%3Anotes');
    await settled(() => /There is no record nobody/.test(document.getElementById('record-said').textContent));
    check('a record that is not there is told', true);

    // a note
    await page.goto(url + '#in=in%3Anotes');
    await page.waitForSelector('#facts dt');
    await page.click('#note-open');
    await page.fill('#note-text', 'a lighthouse \u202e with <b>gulls</b>');
    await page.fill('#note-metadata', '{"topic": ');
    await page.click('#note-add');
    await settled(() => /not JSON/.test(document.getElementById('note-said').textContent));
    check('wrong metadata is told', true);
    await page.fill('#note-metadata', '{"topic": "sea", "year": 2026}');
    await page.fill('#note-id', 'note-1');
    await page.click('#note-add');
    await settled(() => document.getElementById('note-said').textContent.length > 20);
    check('an id that exists is refused', /note-1/.test(await text('#note-said')), await text('#note-said'));
    await picture('note');
    await auditState('note');
    await page.fill('#note-id', '');
    await page.click('#note-add');
    await page.waitForSelector('#view-record:not([hidden])');
    await settled(() => document.getElementById('record-text').textContent !== '');
    check('a note is added, and shown', await text('#record-text') === 'a lighthouse \\u{202e} with <b>gulls</b>' && /sea/.test(await text('#record-metadata')), await text('#record-text'));
    check('without a vector it says so', /no vector yet/.test(await text('#record-near')), await text('#record-near'));
    await page.goto(url + '#in=in%3Anotes&q=lighthouse');
    await settled(() => /lighthouse/.test(document.querySelector('.hit .prose')?.textContent));
    check('and found: an address with another question asks it', await page.inputValue('#query') === 'lighthouse');
  },

  async map() {
    await page.goto(url);
    await page.waitForSelector('#facts dt');
    await page.click('#tab-map');
    await page.waitForSelector('#map[data-points]');
    const points = Number(await page.getAttribute('#map', 'data-points'));
    check('code is on the map', points > 50, points);
    check('places have names', await page.evaluate(() => map.names.length > 2 && map.names.every(n => n.name.length > 2)), await page.evaluate(() => map.names));
    check('it says how good it is', /Of the 10 points next to one here, [1-9]\.\d are among its 10 nearest/.test(await text('#map-said')), await text('#map-said'));
    check('the map has an address', /view=map/.test(page.url()), page.url());
    await picture('map-places');
    await page.fill('#query', 'parse a json number');
    await settled(() => Number(document.getElementById('map').dataset.lit) > 0);
    check('a search lights up its results', /\d+ of \d+ results on this map/.test(await text('#map-lit')), await text('#map-lit'));
    await picture('map-lit');
    await auditState('map');
    await page.reload();
    await settled(() => Number(document.getElementById('map').dataset.lit) > 0);
    check('the address opens the map again, with its search', await page.inputValue('#query') === 'parse a json number');
    await page.fill('#query', '');
    await settled(() => document.getElementById('map').dataset.lit === '0');
    await page.selectOption('#map-key', 'language');
    await settled(() => /markdown \d/.test(document.getElementById('legend').textContent));
    check('the legend names languages', /\bc \d/.test(await text('#legend')) && /markdown \d/.test(await text('#legend')), await text('#legend'));
    await picture('map-code');
    await page.locator('#collections li', {hasText: 'notes'}).locator('.to-map').click();
    await settled(() => document.getElementById('map').dataset.points === '60');
    await page.selectOption('#map-key', 'topic');
    await settled(() => /sea 20/.test(document.getElementById('legend').textContent));
    check('colours by a metadata key', /sea 20/.test(await text('#legend')), await text('#legend'));
    const drawn = () => page.evaluate(() => {
      const c = document.getElementById('map'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
      let n = 0;
      for (let i = 0; i < d.length; i += 4) if (d[i + 3] > 150) { n++; seen.add(`${d[i] >> 5},${d[i + 1] >> 5},${d[i + 2] >> 5}`); }
      return [n, seen.size];
    });
    const [ink, colours] = await drawn();
    check('points are drawn in their colours', ink > 300 && colours >= 3, [ink, colours]);
    await page.locator('#legend button').first().click();
    const [less] = await drawn();
    check('a click on the legend hides a group', less < ink * 0.98, [ink, less]);
    await page.locator('#legend button').first().click();
    await picture('map-notes');

    // hover: somewhere on a point
    const [x, y, id] = await page.evaluate(() => { const p = map.points[7], [a, b] = screenOf(p), r = document.getElementById('map').getBoundingClientRect(); return [r.left + a, r.top + b, p.id]; });
    await page.mouse.move(x - 30, y - 30);
    await page.mouse.move(x, y);
    await page.waitForSelector('#map-tip:not([hidden])');
    check('hover shows the record', /note-\d+.*number/s.test(await text('#map-tip')), await text('#map-tip'));
    await picture('map-hover');
    await page.mouse.click(x, y);
    await page.waitForSelector('#like:not([hidden])');
    await settled(() => document.querySelectorAll('.hit').length > 0);
    check('a click searches for what is similar', /Similar to note-/.test(await text('#like')), [id, await text('#like')]);

    await page.click('#tab-map');
    await page.focus('#map');
    await page.keyboard.press('ArrowRight');
    const first = await text('#map-tip b');
    await page.keyboard.press('ArrowRight');
    const second = await text('#map-tip b');
    check('arrows walk the map', /^note-/.test(first) && first !== second, [first, second]);
    await page.keyboard.press('+');
    check('+ zooms', await page.evaluate(() => map.zoom > 1));
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#like:not([hidden])');
    check('Enter searches', /Similar to note-/.test(await text('#like')));
    await page.evaluate(() => showMapOf('files'));
    await settled(() => /has no vectors/.test(document.getElementById('map-said').textContent));
    check('a collection without vectors says so', true);
  },

  async token() {
    await page.goto(url);
    await page.waitForSelector('#token-asked[open]');
    check('the page asks for the token', true);
    await page.fill('#token', 'not-the-token-at-all');
    await page.keyboard.press('Enter');
    await page.waitForSelector('#token-asked[open]');
    check('a wrong one is asked for again', await hits() === 0);
    await picture('token');
    await auditState('token');
    await page.fill('#token', readFileSync(`${work}/token`, 'utf8'));
    await page.keyboard.press('Enter');
    await page.waitForSelector('#facts dt');
    check('the right one lets in', true);
    await page.reload();
    await page.waitForSelector('#facts dt');
    check('it is kept for the tab', !await page.locator('#token-asked').isVisible());
    await page.evaluate(() => sessionStorage.clear());
    await page.goto('about:blank');
    await page.goto(url + '#token=' + readFileSync(`${work}/token`, 'utf8') + '&q=harbour');
    await page.waitForSelector('#facts dt');
    check('an address with the token lets in', !await page.locator('#token-asked').isVisible());
    check('and does not keep it', await page.evaluate(() => !/token/.test(location.href) && /q=harbour/.test(location.href)), page.url());
    const refused = await fetch(url + 'api/lode/v1/db/collections', {method: 'POST', body: '{}'});
    check('without it nothing is told', refused.status === 401, refused.status);
    const head = await fetch(url), again = await fetch(url, {headers: {'If-None-Match': head.headers.get('etag')}});
    check('the page is kept by its ETag', head.status === 200 && again.status === 304, [head.status, again.status]);
    const policy = head.headers.get('content-security-policy');
    check('the policy allows no other script', /default-src 'none'/.test(policy) && !/unsafe|\*/.test(policy), policy);
  },

  async unindexed() {
    const server = path => fetch(url + 'api/lode/v1/' + path, {method: 'POST', body: '{"force":true}'}).then(answer => answer.status);
    await page.goto(url);
    await page.waitForSelector('#offer:not([hidden])');
    check('a project without an index is not damaged', !await page.locator('#banner').isVisible() && await text('#pulse') === 'not indexed', await text('#pulse'));
    check('it says which project', (await text('#offer-text')).includes(process.env.PROJECT), await text('#offer-text'));
    check('only the whole project can be indexed', await server('index') === 501, await server('index'));
    await picture('unindexed');
    await auditState('unindexed');
    await page.route('**/api/lode/v1/index', async route => { await new Promise(go => setTimeout(go, 900)); await route.continue().catch(() => {}); });
    await page.click('#offer-go');
    await page.waitForSelector('#offer-work progress');
    check('progress is shown, and can be stopped', await page.locator('#offer-work button').isVisible());
    await page.click('#offer-work button');
    await settled(() => /Stopped/.test(document.getElementById('offer-said').textContent));
    check('a click ends it', !await page.locator('#offer-work progress').count());
    await page.unroute('**/api/lode/v1/index');
    await page.click('#offer-go');
    await settled(() => /Indexed: \d+ files/.test(document.getElementById('offer-said').textContent));
    check('the end is told, and what was left out', /Left out: .*1 look like secrets/.test(await text('#offer-said')), await text('#offer-said'));
    await settled(() => document.getElementById('pulse').textContent === 'well');
    await picture('indexed');
    await page.click('#offer-close');
    await search('parse');
    check('the page goes on when it is indexed', await hits() > 0);
    await page.click('#update');
    await settled(() => /Indexed: \d+ files/.test(document.getElementById('offer-said').textContent));
    check('what changed is read by a click', true);
    await page.click('#verify');
    await settled(() => /No damage in \d+ records: everything was read/.test(document.getElementById('verified').textContent));
    check('a check comes to its end', true);
  },

  async elsewhere() {
    await page.goto(url);
    await page.waitForSelector('#offer:not([hidden])');
    check('only lode ui offers the button', !await page.locator('#offer-go').isVisible() && /lode index/.test(await text('#offer-text')), await text('#offer-text'));
    execFileSync(process.env.LODE, ['index', '-q', process.env.PROJECT]);
    await settled(() => document.getElementById('pulse').textContent === 'well');
    check('the page goes on when another process has indexed', !await page.locator('#offer').isVisible());
    await search('parse');
    check('and finds', await hits() > 0);
  },

  async gone() {
    await page.goto(url);
    await page.waitForSelector('#facts dt');
    process.kill(Number(process.env.SERVER), 'SIGKILL');
    await page.waitForSelector('#banner:not([hidden])');
    check('a server that is gone is told, and is no damage', /No connection/.test(await text('#banner')) && await text('#pulse') === 'no answer', await text('#banner'));
    await search('parse');
    check('a search says so', /does not answer/.test(await text('#said')), await text('#said'));
    await picture('gone');
    await auditState('gone');
    const server = spawn(process.env.LODE, ['serve', '--port', new URL(url).port], {cwd: process.env.PROJECT, stdio: 'ignore'});
    await page.waitForSelector('#banner', {state: 'hidden'});
    check('the page goes on when the server is back', await text('#pulse') === 'well', await text('#pulse'));
    await search('utf8 valid');
    check('and finds', await hits() > 0);
    server.kill();
  },

  // 60,000 records: looking, asking, the largest map
  async large() {
    await page.goto(url + '#in=in%3Alarge');
    await settled(() => document.querySelectorAll('.hit').length === 20);
    check('a large collection is counted', /60,000 records/.test(await text('#collections')), await text('#collections'));
    await page.selectOption('#narrow', 'topic');
    await page.waitForSelector('#values button');
    check('its values too', /t0 6,000/.test(await text('#values')), await text('#values'));
    await search('word777');
    check('a search finds', /word777\b/.test(await text('.hit .prose')), await text('.hit'));
    await page.click('#tab-map');
    await page.waitForSelector('#map[data-points="5000"]');
    await page.selectOption('#map-sample', '10000');
    await page.waitForSelector('#map[data-points="10000"]');
    check('ten thousand of them are on the map', /10,000 of 60,000 records/.test(await text('#map-said')), await text('#map-said'));
    const began = Date.now();
    await page.focus('#map');
    for (let i = 0; i < 20; i++) await page.keyboard.press('ArrowRight');
    check('and it can be walked', await page.locator('#map-tip').isVisible());
    console.log(`large: a step on the map took ${Math.round((Date.now() - began) / 20)} ms`);
    await picture('large');
  },

  // every view at the widths of a phone, a tablet and a screen, light and dark
  async widths() {
    for (const [device, width, height] of [['phone', 390, 844], ['tablet', 820, 1180], ['screen', 1440, 900]]) {
      await page.setViewportSize({width, height});
      for (const [name, address, ready] of [['search', '#in=code%3A&q=parse+a+json+number', '.hit'], ['file', '#file=base%2Fjson.c&lines=30-40', '#file-text .here'],
        ['record', '#record=note-1&in=in%3Anotes', '#record-near a'], ['map', '#view=map&in=code%3A&q=parse+a+json+number', '#map[data-points]'], ['collection', '#in=in%3Anotes', '.hit']]) {
        await page.goto('about:blank');
        await page.goto(url + address);
        await page.waitForSelector(ready);
        await page.waitForSelector('#facts dt', {state: 'attached'});
        const wide = await page.evaluate(() => document.documentElement.scrollWidth);
        check(`${name} fits a ${device}`, wide <= width, wide);
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({colorScheme});
          await picture(`${device}-${name}-${colorScheme}`);
          await audit(`${device} ${name} ${colorScheme}`);
        }
      }
    }
  },

  async damage() {
    await page.goto(url);
    await page.waitForSelector('#facts dt, #banner:not([hidden])');
    await page.click('#verify');
    await page.waitForSelector('#verified li, #verified .bad');
    await page.waitForSelector('#banner:not([hidden])');
    check('the banner tells of damage', /Damage/.test(await text('#banner')) && /lode doctor --repair/.test(await text('#banner')), await text('#banner'));
    check('the pulse is not well', await text('#pulse') === 'damaged', await text('#pulse'));
    check('each damage is named', await page.locator('#verified li').count() > 1 && /page|record/.test(await text('#verified li')), await text('#verified'));
    check('files set aside are told', /set aside/.test(await text('#banner')), await text('#banner'));
    await picture('damage');
    await auditState('damage');
  },
};

try {
  await parts[part]();
  check('no complaint of the browser', complaints.length === 0, complaints);
  const own = new URL(url).host;
  check('no request but to the server', [...asked].every(host => host === own || host === 'data:'), [...asked]);
} catch (error) {
  check(`went through (${String(error.message).split('\n').slice(0, 3).join(' ')})`, false, complaints);
  await picture(`failed-${part}`).catch(() => {});
}
await context.close();
console.log(`${passed} passed, ${failed} failed`);

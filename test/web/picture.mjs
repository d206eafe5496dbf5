// picture.mjs URL CHROMIUM PROFILE TO - the pictures of docs/UI.md, for tools/page-picture.sh.
import {chromium} from 'playwright-core';

const [url, executablePath, profile, to] = process.argv.slice(2);
const context = await chromium.launchPersistentContext(profile, {
  executablePath, headless: true, viewport: {width: 1280, height: 800}, colorScheme: 'light', args: ['--no-sandbox', '--disable-gpu', '--no-first-run'],
});
context.setDefaultTimeout(120000);
const page = context.pages()[0] || await context.newPage();

// Each begins with an address, and is taken when this is there
const pictures = [
  ['ui', 'light', 1280, 800, '#in=code%3A&q=where+is+the+checksum+of+a+page+verified', '.hit mark'],
  ['ui-file', 'light', 1280, 800, '#file=src%2Flib%2Fvfs%2Fvfs_seal.c&lines=9-12', '#file-text .here'],
  ['ui-map', 'dark', 1280, 860, '#view=map&in=code%3A&q=distance+between+two+vectors', '#map[data-points]'],
  ['ui-phone', 'dark', 390, 800, '#in=code%3A&q=wait+for+a+lock', '.hit mark'],
];
for (const [name, colorScheme, width, height, address, ready] of pictures) {
  await page.setViewportSize({width, height});
  await page.emulateMedia({colorScheme});
  await page.goto('about:blank');
  await page.goto(url + address);
  await page.waitForSelector(ready);
  await page.waitForSelector('#facts dt', {state: 'attached'});
  if (address.includes('view=map')) await page.waitForFunction(() => Number(document.getElementById('map').dataset.lit) > 0);
  await page.waitForTimeout(800);
  await page.evaluate(() => { document.getElementById('where-am-i').textContent = '~/src/lode/.lode'; document.activeElement.blur(); });
  await page.screenshot({path: `${to}/${name}.png`});
}
await context.close();

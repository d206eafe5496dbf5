// api.js - calls of lode's own API. A refusal for want of a token asks for one, and then the call is made again.

class Failure extends Error {
  constructor(status, message, rows) { super(message); this.status = status; this.rows = rows || []; }
}

// `lode ui` prints an address that ends in #token=...: it is kept for this tab, and does not stay in the address
const given = new URLSearchParams(location.hash.slice(1));
if (given.has('token')) {
  sessionStorage.setItem('lode-token', given.get('token'));
  given.delete('token');
  history.replaceState(null, '', location.pathname + (given.toString() && '#' + given));
}

let tokenAsked = null; // a promise while the dialog is open: all calls wait for the same answer

function askToken() {
  if (tokenAsked) return tokenAsked;
  tokenAsked = new Promise(resolve => {
    $('token').value = '';
    $('token-asked').showModal();
    $('token-form').onsubmit = event => {
      event.preventDefault();
      sessionStorage.setItem('lode-token', $('token').value.trim());
      $('token-asked').close();
      tokenAsked = null;
      resolve();
    };
  });
  return tokenAsked;
}

const authorization = token => token ? {Authorization: 'Bearer ' + token} : {};

// GET of a path of the API: its JSON, or null
async function askPath(path) {
  const response = await fetch('/api/lode/v1/' + path, {cache: 'no-store', headers: authorization(sessionStorage.getItem('lode-token'))});
  return response.ok ? response.json() : null;
}

// How far a call is that is under way: {phase, done, total}, or null
const progressOf = id => askPath('progress/' + id).catch(() => null);

// call('db/query', {..}) -> {rows, summary}; throws Failure, or AbortError when `signal` says so. A long call may have an id of its own: see
// progressOf.
async function call(operation, args, signal, id) {
  for (;;) {
    const token = sessionStorage.getItem('lode-token');
    let response;
    try {
      response = await fetch('/api/lode/v1/' + operation, {
        method: 'POST', signal, cache: 'no-store', body: JSON.stringify(args || {}),
        headers: {'Content-Type': 'application/json', ...(id && {'X-Request-Id': id}), ...authorization(token)},
      });
    } catch (error) {
      if (error.name === 'AbortError') throw error;
      throw new Failure('GONE', 'the server does not answer');
    }
    if (response.status === 401) {
      if (token === sessionStorage.getItem('lode-token')) await askToken();
      continue;
    }
    const answer = await response.json().catch(() => null);
    if (response.ok && answer) return answer;
    const error = answer && answer.error;
    throw new Failure(error && error.status || String(response.status),
                      error && error.message || answer && answer.message || `the server answered ${response.status}`,
                      answer && answer.rows);
  }
}

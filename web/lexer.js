// lexer.js - colours for code: comments, strings, numbers, words of the language. One pass over the text, by a pattern for each family of
// languages; what it does not know stays plain.

const WORDS = new Set(('abstract and as async await auto bool boolean break byte case catch char class const constexpr continue def default defer del delete do ' +
  'double elif else end enum except export extends extern false final finally float fn for foreach from func function go goto if impl implements import in ' +
  'inline int interface is lambda let long loop match mod module mut namespace new nil none None not null nullptr object of operator or override package ' +
  'pass private protected pub public raise return self sealed short signed sizeof static string struct super switch template this throw throws trait true ' +
  'True False try type typedef typename union unsafe unsigned use using val var virtual void volatile when where while with yield').split(' '));
const HASH = new Set('python ruby bash shell fish perl yaml toml make r elixir julia nix dockerfile cmake ini'.split(' '));
const DASH = new Set('sql lua haskell ada elm'.split(' '));
const PROSE = new Set('text markdown rst asciidoc org latex'.split(' '));

function lexerOf(language) {
  const comment = HASH.has(language) ? '#[^\\n]*' : DASH.has(language) ? '--[^\\n]*|/\\*[^]*?(?:\\*/|$)' : '//[^\\n]*|/\\*[^]*?(?:\\*/|$)';
  const long = language === 'python' ? '"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$)|' : '';
  const single = ['rust', 'haskell', 'lisp', 'clojure'].includes(language) ? '\'(?:\\\\.|[^\'\\\\\\n])\'' : '\'(?:\\\\.|[^\'\\\\\\n])*\'';
  return new RegExp(`(${comment})|(${long}"(?:\\\\.|[^"\\\\\\n])*"|${single}|\`(?:\\\\.|[^\`\\\\])*\`)|(\\b\\d[\\w.]*)|([\\p{L}_$][\\p{L}\\p{N}_$]*)`, 'gu');
}

// [[class, text], ...] for each line; class '' is plain, 'name' an identifier
function lexed(text, language) {
  const lines = [[]];
  const put = (kind, part) => part.split('\n').forEach((piece, i) => {
    if (i) lines.push([]);
    if (piece) lines[lines.length - 1].push([kind, piece]);
  });
  let at = 0;
  if (!PROSE.has(language)) {
    for (const found of text.matchAll(lexerOf(language))) {
      const [all, comment, string, number] = found;
      if (found.index > at) put('', text.slice(at, found.index));
      put(comment ? 'comment' : string ? 'string' : number ? 'number' : WORDS.has(all) ? 'word' : 'name', all);
      at = found.index + all.length;
    }
  }
  put('', text.slice(at));
  return lines;
}

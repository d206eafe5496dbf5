// tsc.mjs - what the TypeScript compiler says of a folder of JavaScript or TypeScript: definitions and the place of what each call calls, as lines
// of JSON, as Javac.java prints them.   NODE_PATH=FOLDER-WITH-typescript node bench/symbols/tsc.mjs FOLDER
// A variable whose value is a function is a definition; what is named in an object that is passed around is one if it is a function.
import { createRequire } from 'node:module'
import { readdirSync, realpathSync } from 'node:fs'
import { join, relative } from 'node:path'

const ts = createRequire(join(process.env.NODE_PATH ?? process.cwd(), 'x'))('typescript')
const root = realpathSync(process.argv[2]), files = []
const walk = at => { for (const e of readdirSync(at, { withFileTypes: true })) {
  if (e.name.startsWith('.') || ['node_modules', 'dist'].includes(e.name)) continue
  if (e.isDirectory()) walk(join(at, e.name))
  else if (/\.(js|mjs|cjs|jsx|ts|tsx)$/.test(e.name) && !/\.d\.ts$|\.min\.js$/.test(e.name)) files.push(join(at, e.name))
} }
walk(root)
const program = ts.createProgram(files, { allowJs: true, checkJs: false, noEmit: true, target: ts.ScriptTarget.ESNext, module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler, jsx: ts.JsxEmit.Preserve, strict: true, allowImportingTsExtensions: true })
const checker = program.getTypeChecker()
const place = node => {
  const file = node.getSourceFile(), at = file.getLineAndCharacterOfPosition(node.getStart(file))
  return { path: relative(root, file.fileName), line: at.line + 1, column: at.character }
}
const is_function = n => n && (ts.isArrowFunction(n) || ts.isFunctionExpression(n))
const out = object => console.log(JSON.stringify(object))
const visit = node => {
  const n = node.name
  if (n && (ts.isIdentifier(n) || ts.isPrivateIdentifier(n) || ts.isStringLiteral(n) || ts.isComputedPropertyName(n)) &&
      (ts.isMethodSignature(node) || ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node) || ts.isGetAccessor(node) || ts.isSetAccessor(node) || ts.isClassDeclaration(node) ||
       ts.isInterfaceDeclaration(node) || ts.isEnumDeclaration(node) ||
       ((ts.isVariableDeclaration(node) || ts.isPropertyAssignment(node) || ts.isPropertyDeclaration(node)) && is_function(node.initializer))))
    out({ def: n.text ?? n.getText().split('.').at(-1), ...place(n) })
  if (ts.isBinaryExpression(node) && ts.isPropertyAccessExpression(node.left) && is_function(node.right)) out({ def: node.left.name.text, ...place(node.left.name) })
  if (ts.isConstructorDeclaration(node) && node.body) out({ def: 'constructor', ...place(node) })
  if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
    const called = ts.isPropertyAccessExpression(node.expression) ? node.expression.name : node.expression
    if (ts.isIdentifier(called) || ts.isPrivateIdentifier(called)) {
      let symbol = checker.getSymbolAtLocation(called)
      if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol)
      // { name } in an object: what is put there
      const short = symbol?.declarations?.find(ts.isShorthandPropertyAssignment)
      if (short) symbol = checker.getShorthandAssignmentValueSymbol(short) ?? symbol
      if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol)
      const d = symbol?.declarations?.find(d => d.body) ?? symbol?.valueDeclaration ?? symbol?.declarations?.[0]
      const local = d && (ts.isParameter(d) || ts.isBindingElement(d))
      if (d && !local) {
        const to = place(d.name ?? d)
        out({ call: called.text, ...place(called), to: to.path.startsWith('..') || to.path.includes('node_modules') ? { path: '../library', line: 1 } : to })
      }
    }
  }
  ts.forEachChild(node, visit)
}
for (const f of program.getSourceFiles()) if (files.includes(f.fileName)) visit(f)

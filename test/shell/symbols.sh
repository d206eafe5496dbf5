#!/bin/bash
# symbols.sh - definitions, uses, callers and callees from end to end: calls across files of each language that resolves them, what stays
# open, changes, damage, indexes of older versions, kill -9. Usage: symbols.sh PATH-OF-LODE
set -u
. "$(dirname "$0")/../support/kit.sh"
begin symbols "$1"

mkdir -p "$tmp/p" && cd "$tmp/p" || exit 1
mkdir -p c go/util py/pkg js java/a rust/src cs rb php kt cpp
cat >c/pool.h <<'X'
typedef struct pool { int n; struct ops *ops; } pool;
int pool_open(pool *p);
X
cat >c/pool.c <<'X'
#include "pool.h"
enum state { POOL_IDLE, POOL_BUSY };
static int helper(int n) { return n; }
/* Opens a pool. Once. */
int pool_open(pool *p) { return helper(p->n) + POOL_BUSY; }
static int never_called(void) { return 1; }
X
cat >c/main.c <<'X'
#include "pool.h"
static int helper(int n) { if (n) return 2; return n; }
int main(void) { pool p; return pool_open(&p) + helper(1) + printf("pool_open"); }
X
cat >cpp/a.cpp <<'X'
class Base { public: void ping() {} };
class Engine : public Base {
public:
  void start() { ping(); spin(); }
  void spin() {}
};
void drive(Engine &e) { e.start(); e.ping(); }
X
cat >go/util/util.go <<'X'
package util
type Counter struct{ n int }
func NewCounter() *Counter { return &Counter{} }
func (c *Counter) Add(k int) { c.bump(k) }
func (c *Counter) bump(k int) { c.n += k }
X
cat >go/main.go <<'X'
package main
import "example.org/x/go/util"
func run() { c := util.NewCounter(); c.Add(1) }
X
cat >py/pkg/store.py <<'X'
class Store:
    """Keeps things."""
    def save_record(self, x):
        return self._check(x)
    def _check(self, x):
        return x
def make_store():
    return Store()
X
cat >py/app.py <<'X'
from pkg.store import Store, make_store as build
class App:
    def __init__(self):
        self.store = Store()
    def go(self):
        self.store.save_record(1)
        build()
X
cat >js/lib.js <<'X'
export class Queue {
  push_item(x) { return this.grow(x); }
  grow(x) { return x; }
}
export function makeQueue() { return new Queue(); }
X
cat >js/app.js <<'X'
import { makeQueue as mk, Queue } from './lib.js';
export function start() { const q = new Queue(); q.push_item(1); return mk(); }
X
cat >js/typed.ts <<'X'
import { Queue } from './lib';
export class Typed { constructor(private q: Queue) {} private inner: Queue = new Queue();
  feed(): void { this.inner.push_item(2); } }
X
cat >java/a/Tool.java <<'X'
package a;
public class Tool {
  private Gear gear;
  public void turn() { gear.rotate(); check(); }
  private void check() {}
}
X
cat >java/a/Gear.java <<'X'
package a;
public class Gear { public void rotate() { } public static Gear make() { return new Gear(); } }
X
cat >rust/src/gear.rs <<'X'
pub struct Gear { pub teeth: u8 }
impl Gear {
  pub fn fresh() -> Gear { Gear { teeth: 1 } }
  pub fn mesh(&self) -> u8 { self.teeth_of() }
  fn teeth_of(&self) -> u8 { self.teeth }
}
X
cat >rust/src/main.rs <<'X'
mod gear;
use crate::gear::Gear;
fn main() { let g = Gear::fresh(); g.mesh(); }
X
cat >cs/Shop.cs <<'X'
namespace S {
  class Till { public void Ring() { } }
  class Shop {
    private Till till;
    void Sell() { till.Ring(); Close(); }
    void Close() { }
  }
}
X
cat >rb/shop.rb <<'X'
class Basket
  def put_item(x)
    weigh(x)
  end
  def weigh(x)
    x
  end
end
def shop
  b = Basket.new
  b.put_item(1)
end
X
cat >php/shop.php <<'X'
<?php
class Cart {
  function addItem($x) { return $this->price($x); }
  function price($x) { return $x; }
}
function buy() { $c = new Cart(); $c->addItem(1); }
X
cat >kt/shop.kt <<'X'
class Crate {
  fun load(x: Int): Int { return weight(x) }
  fun weight(x: Int): Int { return x }
}
fun ship() {
  val c = Crate()
  c.load(1)
}
X
if ! with_syntax "symbols"; then
  finish
  exit
fi
run 0 index

# outline, def: kinds, signatures, documentation, members
run 0 outline c/pool.c --json
has '"kind":"function","name":"pool_open","signature":"int pool_open(pool *p)","doc":"Opens a pool."'
has '"kind":"constant","name":"state.POOL_BUSY"'
run 0 outline c/pool.h --json; has '"name":"pool.n"'; has '"declared":true'
run 0 outline py --json; has '"name":"Store"'; hasnt 'Store.save_record'
run 0 outline py/pkg/store.py --json; has '"kind":"method","name":"Store.save_record"'; has 'Keeps things.'
run 0 def pool_open --json; has '"path":"c/pool.c","line":5'; has '"path":"c/pool.h","line":2'
run 0 def Store.save_record --json; has '"line":3'
run 0 def c/main.c:helper --json; has 'c/main.c'; hasnt 'c/pool.c'
run 0 def POOL_IDLE; has 'c/pool.c'
run 1 def no_such_thing; says 'nothing in the index defines "no_such_thing"'
run 1 outline c/none.c; says 'the index has no symbols of "c/none.c"'
run 2 def ''; says 'must not be empty'

# as text: below its file, what is inside of something below it, lines and kind first
run 0 outline py/pkg/store.py
has 'py/pkg/store.py
  1-6        class     class Store
  3-4        method      def save_record(self, x)
  5-6        method      def _check(self, x)
  7-8        function  def make_store()'
run 0 outline c -n 4; has 'c/main.c'; has 'c/pool.c'; has 'c/pool.h'; has 'and 3 more: lode outline c/pool.c'
run 0 outline c -n 2; says '1 more files are not shown'
run 0 def pool_open; has 'c/pool.c:5  pool_open  function
    int pool_open(pool *p)
    Opens a pool.
c/pool.h:2  pool_open  function, declared'
run 0 refs pool_open; has 'c/main.c
  3      call    main  int main(void) { pool p; return pool_open(&p)'; has '→ c/pool.c:5'
run 0 callers c/pool.c:helper --depth 2; has 'helper  c/pool.c:3
  pool_open  c/pool.c:5
    main  c/main.c:3'
run 0 trace main c/pool.c:helper; has '  pool_open  c/pool.c:5  line 3
    helper  c/pool.c:3  line 5'
# what is only declared, and comments behind code
printf 'extern int shared_n;\ntypedef struct fwd fwd;\nint behind; /* of behind */\nint after_it;\n' >c/decl.h
printf 'int shared_n = 1;\nstruct fwd { int x; };\n' >c/decl.c
run 0 def shared_n --json; has '"path":"c/decl.c","line":1'; has 'extern int shared_n;","declared":true'
run 0 def fwd --json; has '"path":"c/decl.h","line":2,"end_line":2,"kind":"struct","name":"fwd","signature":"typedef struct fwd fwd;","declared":true'
run 0 def after_it --json; hasnt 'of behind'
printf 'OPT?=-O2\nall:\n\tcc\n' >c/rules.mk
run 0 outline c/rules.mk --json; has '"name":"OPT"'
# a method is found by the class that inherits it; an import means no method
printf 'class Child(Middle):\n    pass\nclass Middle(Root):\n    pass\nclass Root:\n    def given_down(self):\n        pass\n' >py/inherit.py
run 0 def Child.given_down --json; has '"name":"Root.given_down"'
run 1 def Child.not_there
printf 'def picked():\n    pass\nclass Holder:\n    def picked(self):\n        pass\n' >py/pkg/picks.py
printf 'from pkg.picks import picked\n' >py/picker.py
run 0 refs picked --json; has '"use":"import","in":null,"to":"py/pkg/picks.py:1"'

# calls that the text resolves: CALLEE CALLER PLACE, one for each language
while read -r callee caller place; do
  run 0 callers "$callee" --json
  has "\"from\":\"$caller\""
  has "\"at\":\"$place\""
  hasnt candidates
done <<'X'
pool_open main c/pool.c:5
c/pool.c:helper pool_open c/pool.c:3
c/main.c:helper main c/main.c:2
Engine.start drive cpp/a.cpp:4
Base.ping Engine.start cpp/a.cpp:1
Base.ping drive cpp/a.cpp:1
Counter.Add run go/util/util.go:4
Counter.bump Counter.Add go/util/util.go:5
NewCounter run go/util/util.go:3
Store.save_record App.go py/pkg/store.py:3
Store._check Store.save_record py/pkg/store.py:5
make_store App.go py/pkg/store.py:7
push_item start js/lib.js:2
push_item Typed.feed js/lib.js:2
makeQueue start js/lib.js:5
Queue.grow Queue.push_item js/lib.js:3
rotate Tool.turn java/a/Gear.java:2
Tool.check Tool.turn java/a/Tool.java:5
Gear.mesh main rust/src/gear.rs:4
teeth_of Gear.mesh rust/src/gear.rs:5
fresh main rust/src/gear.rs:3
Ring S.Shop.Sell cs/Shop.cs:2
Shop.Close S.Shop.Sell cs/Shop.cs:6
put_item shop rb/shop.rb:2
Basket.weigh Basket.put_item rb/shop.rb:5
addItem buy php/shop.php:3
Cart.price Cart.addItem php/shop.php:4
Crate.load ship kt/shop.kt:2
Crate.weight Crate.load kt/shop.kt:3
X
# a string is no call, and a static function of another file is not meant
run 0 refs pool_open --json; check "one call of pool_open: $out" [ "$(grep -o '"use":"call"' <<<"$out" | wc -l)" = 1 ]
run 0 callees main --json; has '"to":"printf","at":null'
run 0 callees 'c/main.c:main' --json; has '"at":"c/main.c:2"'; hasnt 'c/pool.c:3'

# what overrides something outside of the project may not be what is called; a test's method is not; a declaration leads to the definition
mkdir -p java/over py/tests; printf 'class Wrapped implements Outside {\n  @Override\n  public int only_here() { return 1; }\n}\n' >java/over/Wrapped.java
printf 'class User {\n  int use() { return whatever().only_here(); }\n}\n' >java/over/User.java
printf 'class Mock:\n    def of_a_mock(self):\n        pass\n' >py/tests/test_mock.py
printf 'def uses_mock(x):\n    x.of_a_mock()\n' >py/uses_mock.py
printf 'int in_other_c(void);\n' >c/all.h; printf 'int in_other_c(void) { return 1; }\n' >c/other.c
printf '#include "all.h"\nint asks_other(void) { return in_other_c(); }\n' >c/asks.c
"$lode" index >/dev/null 2>&1
run 0 callees User.use --json; has '"to":"Wrapped.only_here"'; has '"candidates":1'
run 0 callees uses_mock --json; hasnt Mock
run 0 callees asks_other --json; has '"at":"c/other.c:1"'; hasnt candidates
rm -r java/over py/tests py/uses_mock.py c/all.h c/other.c c/asks.c

# what a file takes out of a module is that, not its own variable; this outside of a class; a method that the language's own types have, too,
# and what a builtin or a package has, are no evidence; a trait's method through a value of unknown type; what NewX returns
mkdir -p js/req rust/src/dyn go/made
printf 'exports.normal = function (x) { return x }\nfunction pickedOut() {}\nmodule.exports = { pickedOut }\n' >js/req/utils.js
cat >js/req/main.js <<'Y'
var normal = require('./utils').normal
const { pickedOut: taken } = require('./utils')
const outer = require('outside')
module.exports = {
  firstOne () { return this.secondOne(outer) },
  secondOne (x) { normal(x); taken(); Object.onlyHere(x); x.keys(); outer.onlyHere() }
}
Y
printf 'module.exports = class Whole {\n  goes () { return this.stays() }\n  stays () { return 1 }\n}\n' >js/req/whole.js
printf 'class Held {\n  onlyHere() {}\n  keys() {}\n}\n' >js/req/held.js
cat >rust/src/dyn/shape.rs <<'Y'
pub trait Shape { fn outline_of(&self) -> u8; }
struct Round; struct Flat;
impl Shape for Round { fn outline_of(&self) -> u8 { 1 } fn len(&self) -> u8 { 2 } }
impl Shape for Flat { fn outline_of(&self) -> u8 { 2 } }
fn draws(all: Vec<Box<dyn Shape>>) { for one in all.iter() { one.outline_of(); one.len(); Gone::outline_of(); } }
Y
printf 'package made\ntype Reader struct{}\nfunc (r *Reader) Step() {}\nfunc NewFromFile() *Reader { return &Reader{} }\nfunc reads() { r := NewFromFile(); r.Step() }\n' >go/made/made.go
"$lode" index >/dev/null 2>&1
run 0 callees js/req/main.js:secondOne --json
has '"to":"pickedOut","at":"js/req/utils.js:2"'
check "normal is the module's: $out" grep -q '"to":"[a-z.]*normal","at":"js/req/utils.js:1"' <<<"$out"
check "nothing of another file's class: $out" [ "$(grep -c 'held.js' <<<"$(grep -v candidates <<<"$out")")" = 0 ]
run 0 callees js/req/main.js:firstOne --json; has '"at":"js/req/main.js:6"'; hasnt candidates
run 0 callees goes --json; has '"at":"js/req/whole.js:3"'; hasnt candidates
run 0 callees draws --json; has '"to":"Shape.outline_of","at":"rust/src/dyn/shape.rs:1"'
check "len may be a vector's: $out" [ "$(grep '"line":5.*len' <<<"$out" | grep -cv candidates)" = 0 ]
run 0 callees reads --json; has '"to":"Reader.Step"'; hasnt candidates
rm -r js/req rust/src/dyn go/made

# several functions may be meant: said so, with how many
mkdir -p amb; printf 'class A1:\n    def twin_call(self):\n        pass\nclass A2:\n    def twin_call(self):\n        pass\n' >amb/a.py
printf 'def use_it(x):\n    x.twin_call()\n' >amb/b.py
"$lode" index >/dev/null 2>&1
run 0 callers twin_call --json; has '"candidates":2'
run 0 refs twin_call --json; has '"to":null,"candidates":2'

# walks: depth, impact, trace
run 0 callers c/pool.c:helper --depth 2 --json; has '"depth":2,"path":"c/main.c"'
run 0 impact c/pool.c:3 --json; has '"from":"pool_open"'; has '"from":"main"'
run 0 impact --name Store --json; has '"from":"make_store"'
run 1 impact c/pool.c:999; says 'line 999 of "c/pool.c" is in no definition'
run 2 impact; says 'name one thing'
run 0 trace main c/pool.c:helper --json; has '"to":"pool_open"'; has '"depth":2'
run 1 trace c/pool.c:helper main
run 0 callers Counter.bump --depth 5 --json; has '"from":"run"'

# the project as a whole
printf 'def helper_of_tests():\n    pass\n' >py/test_only.py
run 0 unused --json; hasnt helper_of_tests; has never_called; hasnt '"pool_open"'; hasnt '"name":"main"'
run 0 hotspots -n 1 --json; has '"path":"c/main.c","line":2'; hasnt changes
mkdir cyc; echo 'from cyc import b' >cyc/a.py; echo 'from cyc import a' >cyc/b.py
run 0 cycles --json; has '"size":2'; has cyc/a.py; has cyc/b.py
run 1 cycles c

# a recursive function and one that calls back end a walk
printf 'def ping_a():\n    pong_b()\ndef pong_b():\n    ping_a()\n    pong_b()\n' >cyc/c.py
run 0 callers ping_a --depth 32 --json; has pong_b
run 0 callees ping_a --depth 32 --json; has ping_a

# a change: what a revision touched
if command -v git >/dev/null; then
  git init -q . && git add -A && git -c user.name=t -c user.email=t@example.org commit -qm one
  sed -i 's/return helper(p->n)/return helper(p->n + 1)/' c/pool.c
  run 0 impact --diff HEAD --json; has '"to":"pool_open"'; has '"from":"main"'
  run 2 impact --diff --output=x; run 1 impact --diff nosuchrev; says 'no such revision'
  run 0 hotspots -n 3 --json; has '"changes":1'
else
  skip "no git"
fi

# a file that changes takes its symbols along; one that goes, too
printf 'int renamed(void) { return 1; }\n' >c/main.c
run 0 def renamed; run 1 callers pool_open
rm c/main.c; "$lode" index >/dev/null 2>&1
run 1 def renamed

# damage: a table that is none is left out, and said; the rest answers
"$lode" db get code.symbols --limit 0 --include metadata --json >"$tmp/tables" 2>/dev/null
check "a table for each file with a grammar" [ "$(grep -o '"table"' "$tmp/tables" | wc -l)" -ge 18 ]
run 5 db delete code.symbols --ids go/main.go; says 'belongs to the code index'

# status says how many files have symbols
cp -r "$tmp/p" "$tmp/old"; cd "$tmp/old" || exit 1
rm -rf .lode; "$lode" index >/dev/null 2>&1
run 0 status --json; has '"symbols"'

# kill -9 while it indexes: the symbols are those of the files that were written, and the next run completes them
rm -rf .lode
for i in $(seq 400); do printf 'def fn_%s():\n    return fn_%s()\n' "$i" "$((i + 1))" >"py/gen_$i.py"; done
"$lode" index >/dev/null 2>&1 & pid=$!
sleep 0.3; kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null
"$lode" index >/dev/null 2>&1
run 0 def fn_400; has gen_400.py
files=$("$lode" db count files 2>/dev/null | tr -dc 0-9)
n=$("$lode" db count code.symbols 2>/dev/null | tr -dc 0-9)
check "symbols of $n files of $files" [ "$n" = "$files" ]

# a name that 3,000 files define: bounded, answered
mkdir many; for i in $(seq 3000); do echo 'def everywhere(): pass' >"many/m$i.py"; done
"$lode" index >/dev/null 2>&1
run 0 def everywhere -n 5 --json; says 'more are not shown'
run 1 callers everywhere -n 5 --json
finish

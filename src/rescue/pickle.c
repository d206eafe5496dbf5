/* pickle.c - the machine behind pickle.h.
 *
 * Bounds: every opcode takes at least one byte and pushes at most one value, so stack and memo hold at most as many values as
 * the file has bytes. Dictionaries are not built: an entry is handed out when the opcode that would store it is met; which
 * dictionary it belongs to is told by the string below that dictionary on the stack, its key in the outer one.
 */
#include "pickle.h"

enum {
  OP_PROTO = 0x80, OP_FRAME = 0x95, OP_STOP = '.', OP_MARK = '(', OP_NONE = 'N', OP_EMPTY_DICT = '}', OP_EMPTY_TUPLE = ')',
  OP_BININT = 'J', OP_BININT1 = 'K', OP_BININT2 = 'M', OP_LONG1 = 0x8a, OP_BINUNICODE = 'X', OP_SHORT_BINUNICODE = 0x8c,
  OP_BINUNICODE8 = 0x8d, OP_SETITEM = 's', OP_SETITEMS = 'u', OP_MEMOIZE = 0x94, OP_BINPUT = 'q', OP_LONG_BINPUT = 'r',
  OP_BINGET = 'h', OP_LONG_BINGET = 'j', OP_GLOBAL = 'c', OP_STACK_GLOBAL = 0x93, OP_NEWOBJ = 0x81, OP_BUILD = 'b',
};

typedef enum kind { K_NONE, K_INT, K_STR, K_DICT, K_MARK, K_TUPLE, K_CLASS, K_OBJECT } kind;
typedef struct value {
  kind kind;
  int64_t i;
  lode_str s;
} value;

typedef struct machine {
  const unsigned char *at, *end;
  value *stack, *memo;
  size_t n, cap, n_memo, cap_memo;
  const lode__pickle_sink *sink;
} machine;

typedef enum step { GO, STOP, BAD, NOMEM } step;

static step push(machine *m, value v) {
  if (!mem_grow(&m->stack, &m->cap, m->n + 1, sizeof *m->stack)) return NOMEM;
  m->stack[m->n++] = v;
  return GO;
}

/* n bytes, little-endian. */
static bool number(machine *m, size_t n, uint64_t *u) {
  *u = 0;
  if ((size_t)(m->end - m->at) < n) return false;
  for (size_t i = 0; i < n; i++) *u |= (uint64_t)m->at[i] << (8 * i);
  m->at += n;
  return true;
}

static step push_string(machine *m, size_t length_bytes) {
  uint64_t len;
  if (!number(m, length_bytes, &len) || len > (uint64_t)(m->end - m->at)) return BAD;
  lode_str s = {(const char *)m->at, (size_t)len};
  m->at += len;
  return push(m, (value){.kind = K_STR, .s = s});
}

/* A signed number of n <= 8 bytes. */
static step push_int(machine *m, size_t n, bool is_signed) {
  uint64_t u;
  if (n > 8 || !number(m, n, &u)) return BAD;
  if (is_signed && n && n < 8 && u >> (8 * n - 1)) u |= UINT64_MAX << (8 * n);
  return push(m, (value){.kind = K_INT, .i = (int64_t)u});
}

static bool is_class(lode_str module, lode_str name) {
  return str_eq(module, STR_LIT("chromadb.segment.impl.vector.local_persistent_hnsw")) &&
         str_eq(name, STR_LIT("PersistentData"));
}

static bool read_line(machine *m, lode_str *line) {
  const unsigned char *nl = memchr(m->at, '\n', (size_t)(m->end - m->at));
  if (!nl) return false;
  *line = (lode_str){(const char *)m->at, (size_t)(nl - m->at)};
  m->at = nl + 1;
  return true;
}

static step memo_put(machine *m, uint64_t i) {
  if (m->n == 0 || i > m->n_memo) return BAD; /* the writers number them one after the other */
  if (!mem_grow(&m->memo, &m->cap_memo, m->n_memo + 1, sizeof *m->memo)) return NOMEM;
  if (i == m->n_memo) m->n_memo++;
  m->memo[i] = m->stack[m->n - 1];
  return GO;
}

static step memo_get(machine *m, size_t bytes) {
  uint64_t i;
  if (!number(m, bytes, &i) || i >= m->n_memo) return BAD;
  return push(m, m->memo[i]);
}

/* Hands out stack[first .. n): key, value, key, value of the dictionary at stack[dict]. */
static step store_items(machine *m, size_t dict, size_t first) {
  const lode__pickle_sink *sink = m->sink;
  lode_str name = dict > 0 && m->stack[dict - 1].kind == K_STR ? m->stack[dict - 1].s : (lode_str){0};
  bool to_label = str_eq(name, STR_LIT("id_to_label")), to_id = str_eq(name, STR_LIT("label_to_id")),
       to_seq = str_eq(name, STR_LIT("id_to_seq_id"));
  if ((m->n - first) % 2) return BAD;
  for (size_t i = first; i < m->n; i += 2) {
    const value *k = &m->stack[i], *v = &m->stack[i + 1];
    if ((to_label || to_seq) && k->kind == K_STR && v->kind == K_INT) {
      if (!sink->pair(sink->ctx, to_seq ? LODE__PICKLE_ID_TO_SEQ : LODE__PICKLE_ID_TO_LABEL, k->s, v->i)) return NOMEM;
    } else if (to_id && k->kind == K_INT && v->kind == K_STR) {
      if (!sink->pair(sink->ctx, LODE__PICKLE_LABEL_TO_ID, v->s, k->i)) return NOMEM;
    } else if (!name.data && k->kind == K_STR && v->kind == K_INT) {
      sink->number(sink->ctx, k->s, v->i);
    } else if (to_label || to_id || k->kind != K_STR) {
      return BAD;
    }
  }
  m->n = first;
  return GO;
}

static step set_items(machine *m) {
  size_t mark = m->n;
  while (mark > 0 && m->stack[mark - 1].kind != K_MARK) mark--;
  if (mark < 2 || m->stack[mark - 2].kind != K_DICT) return BAD;
  step s = store_items(m, mark - 2, mark);
  m->n = mark - 1;
  return s;
}

static step set_item(machine *m) {
  if (m->n < 3 || m->stack[m->n - 3].kind != K_DICT) return BAD;
  return store_items(m, m->n - 3, m->n - 2);
}

/* Objects: the class by name, an empty one of it, its fields. Nothing is made: they are markers on the stack. */
static step objects(machine *m, unsigned op) {
  lode_str module, name;
  switch (op) {
    case OP_GLOBAL:
      if (!read_line(m, &module) || !read_line(m, &name) || !is_class(module, name)) return BAD;
      return push(m, (value){.kind = K_CLASS});
    case OP_STACK_GLOBAL:
      if (m->n < 2 || m->stack[m->n - 1].kind != K_STR || m->stack[m->n - 2].kind != K_STR) return BAD;
      if (!is_class(m->stack[m->n - 2].s, m->stack[m->n - 1].s)) return BAD;
      m->n -= 2;
      return push(m, (value){.kind = K_CLASS});
    case OP_NEWOBJ:
      if (m->n < 2 || m->stack[m->n - 1].kind != K_TUPLE || m->stack[m->n - 2].kind != K_CLASS) return BAD;
      m->n -= 2;
      return push(m, (value){.kind = K_OBJECT});
    default:
      if (m->n < 2 || m->stack[m->n - 1].kind != K_DICT || m->stack[m->n - 2].kind != K_OBJECT) return BAD;
      m->n--;
      return GO;
  }
}

static step run_one(machine *m) {
  uint64_t u;
  if (m->at == m->end) return BAD;
  unsigned op = *m->at++;
  switch (op) {
    case OP_PROTO: return number(m, 1, &u) && u >= 2 && u <= 5 ? GO : BAD;
    case OP_FRAME: return number(m, 8, &u) ? GO : BAD;
    case OP_STOP: return m->n == 1 && (m->stack[0].kind == K_DICT || m->stack[0].kind == K_OBJECT) ? STOP : BAD;
    case OP_MARK: return push(m, (value){.kind = K_MARK});
    case OP_NONE: return push(m, (value){.kind = K_NONE});
    case OP_EMPTY_DICT: return push(m, (value){.kind = K_DICT});
    case OP_EMPTY_TUPLE: return push(m, (value){.kind = K_TUPLE});
    case OP_BININT: return push_int(m, 4, true);
    case OP_BININT1: return push_int(m, 1, false);
    case OP_BININT2: return push_int(m, 2, false);
    case OP_LONG1: return number(m, 1, &u) ? push_int(m, (size_t)u, true) : BAD;
    case OP_BINUNICODE: return push_string(m, 4);
    case OP_SHORT_BINUNICODE: return push_string(m, 1);
    case OP_BINUNICODE8: return push_string(m, 8);
    case OP_SETITEM: return set_item(m);
    case OP_SETITEMS: return set_items(m);
    case OP_MEMOIZE: return memo_put(m, m->n_memo);
    case OP_BINPUT: return number(m, 1, &u) ? memo_put(m, u) : BAD;
    case OP_LONG_BINPUT: return number(m, 4, &u) ? memo_put(m, u) : BAD;
    case OP_BINGET: return memo_get(m, 1);
    case OP_LONG_BINGET: return memo_get(m, 4);
    case OP_GLOBAL: case OP_STACK_GLOBAL: case OP_NEWOBJ: case OP_BUILD: return objects(m, op);
    default: return BAD;
  }
}

lode_status lode__pickle_read(lode_str bytes, const lode__pickle_sink *sink, lode_error *err) {
  const unsigned char *begin = (const unsigned char *)bytes.data;
  machine m = {.at = begin, .end = begin + bytes.len, .sink = sink};
  step s = GO;
  size_t op_at = 0;
  while (s == GO) {
    op_at = (size_t)(m.at - begin);
    s = run_one(&m);
  }
  mem_free(m.stack);
  mem_free(m.memo);
  if (s == NOMEM) return err_nomem(err);
  if (s == BAD) return err_set(err, LODE_CORRUPT, "the pickle makes no sense from byte %zu on", op_at);
  return LODE_OK;
}

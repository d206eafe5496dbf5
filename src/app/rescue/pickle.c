/* SPDX-License-Identifier: Apache-2.0 */
/* pickle.c - the stack machine of pickle.h.
 *
 * Bounds: every opcode takes at least one byte and pushes at most one value, so stack and memo hold at most as many
 * values as the file has bytes. Dictionaries are not built: an entry is emitted at the opcode that would store it.
 * Its dictionary is identified by the string below it on the stack, which is its key in the outer dictionary.
 */
#include "rescue/pickle.h"

enum {
  PICKLE_PROTO = 0x80,
  PICKLE_FRAME = 0x95,
  PICKLE_STOP = '.',
  PICKLE_MARK = '(',
  PICKLE_NONE = 'N',
  PICKLE_EMPTY_DICT = '}',
  PICKLE_EMPTY_TUPLE = ')',
  PICKLE_BININT = 'J',
  PICKLE_BININT1 = 'K',
  PICKLE_BININT2 = 'M',
  PICKLE_LONG1 = 0x8a,
  PICKLE_BINUNICODE = 'X',
  PICKLE_SHORT_BINUNICODE = 0x8c,
  PICKLE_BINUNICODE8 = 0x8d,
  PICKLE_SETITEM = 's',
  PICKLE_SETITEMS = 'u',
  PICKLE_MEMOIZE = 0x94,
  PICKLE_BINPUT = 'q',
  PICKLE_LONG_BINPUT = 'r',
  PICKLE_BINGET = 'h',
  PICKLE_LONG_BINGET = 'j',
  PICKLE_GLOBAL = 'c',
  PICKLE_STACK_GLOBAL = 0x93,
  PICKLE_NEWOBJ = 0x81,
  PICKLE_BUILD = 'b',
};

typedef enum pickle_kind {
  PICKLE_KIND_NONE,
  PICKLE_KIND_INT,
  PICKLE_KIND_STR,
  PICKLE_KIND_DICT,
  PICKLE_KIND_MARK,
  PICKLE_KIND_TUPLE,
  PICKLE_KIND_CLASS,
  PICKLE_KIND_OBJECT
} pickle_kind;
typedef struct pickle_value {
  pickle_kind kind;
  int64_t i;
  lode_str s;
} pickle_value;

typedef struct pickle_machine {
  const unsigned char *at, *end;
  pickle_value *stack, *memo;
  size_t n, cap, n_memo, cap_memo;
  const rescue_pickle_sink *sink;
} pickle_machine;

typedef enum pickle_step { PICKLE_STEP_GO, PICKLE_STEP_STOP, PICKLE_STEP_BAD, PICKLE_STEP_NOMEM } pickle_step;

static pickle_step pickle_push(pickle_machine *m, pickle_value v) {
  if (!mem_grow(&m->stack, &m->cap, m->n + 1, sizeof *m->stack)) return PICKLE_STEP_NOMEM;
  m->stack[m->n++] = v;
  return PICKLE_STEP_GO;
}

/* Reads n bytes, little-endian. */
static bool pickle_read_number(pickle_machine *m, size_t n, uint64_t *u) {
  *u = 0;
  if ((size_t)(m->end - m->at) < n) return false;
  for (size_t i = 0; i < n; i++) *u |= (uint64_t)m->at[i] << (8 * i);
  m->at += n;
  return true;
}

static pickle_step pickle_push_string(pickle_machine *m, size_t length_bytes) {
  uint64_t len;
  if (!pickle_read_number(m, length_bytes, &len) || len > (uint64_t)(m->end - m->at)) return PICKLE_STEP_BAD;
  lode_str s = {(const char *)m->at, (size_t)len};
  m->at += len;
  return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_STR, .s = s});
}

/* Pushes a number of n <= 8 bytes. */
static pickle_step pickle_push_int(pickle_machine *m, size_t n, bool is_signed) {
  uint64_t u;
  if (n > 8 || !pickle_read_number(m, n, &u)) return PICKLE_STEP_BAD;
  if (is_signed && n && n < 8 && u >> (8 * n - 1)) u |= UINT64_MAX << (8 * n);
  return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_INT, .i = (int64_t)u});
}

static bool pickle_is_class(lode_str module, lode_str name) {
  return str_eq(module, STR_LIT("chromadb.segment.impl.vector.local_persistent_hnsw")) &&
         str_eq(name, STR_LIT("PersistentData"));
}

static bool pickle_read_line(pickle_machine *m, lode_str *line) {
  const unsigned char *nl = memchr(m->at, '\n', (size_t)(m->end - m->at));
  if (!nl) return false;
  *line = (lode_str){(const char *)m->at, (size_t)(nl - m->at)};
  m->at = nl + 1;
  return true;
}

static pickle_step pickle_memo_put(pickle_machine *m, uint64_t i) {
  if (m->n == 0 || i > m->n_memo) return PICKLE_STEP_BAD; /* the writers number them consecutively */
  if (!mem_grow(&m->memo, &m->cap_memo, m->n_memo + 1, sizeof *m->memo)) return PICKLE_STEP_NOMEM;
  if (i == m->n_memo) m->n_memo++;
  m->memo[i] = m->stack[m->n - 1];
  return PICKLE_STEP_GO;
}

static pickle_step pickle_memo_get(pickle_machine *m, size_t bytes) {
  uint64_t i;
  if (!pickle_read_number(m, bytes, &i) || i >= m->n_memo) return PICKLE_STEP_BAD;
  return pickle_push(m, m->memo[i]);
}

/* Emits stack[first .. n): key, value, key, value of the dictionary at stack[dict]. */
static pickle_step pickle_emit_items(pickle_machine *m, size_t dict, size_t first) {
  const rescue_pickle_sink *sink = m->sink;
  lode_str name = dict > 0 && m->stack[dict - 1].kind == PICKLE_KIND_STR ? m->stack[dict - 1].s : (lode_str){0};
  bool to_label = str_eq(name, STR_LIT("id_to_label")), to_id = str_eq(name, STR_LIT("label_to_id")),
       to_seq = str_eq(name, STR_LIT("id_to_seq_id"));
  if ((m->n - first) % 2) return PICKLE_STEP_BAD;
  for (size_t i = first; i < m->n; i += 2) {
    const pickle_value *k = &m->stack[i], *v = &m->stack[i + 1];
    if ((to_label || to_seq) && k->kind == PICKLE_KIND_STR && v->kind == PICKLE_KIND_INT) {
      if (!sink->pair(sink->ctx, to_seq ? RESCUE_PICKLE_ID_TO_SEQ : RESCUE_PICKLE_ID_TO_LABEL, k->s, v->i))
        return PICKLE_STEP_NOMEM;
    } else if (to_id && k->kind == PICKLE_KIND_INT && v->kind == PICKLE_KIND_STR) {
      if (!sink->pair(sink->ctx, RESCUE_PICKLE_LABEL_TO_ID, v->s, k->i)) return PICKLE_STEP_NOMEM;
    } else if (!name.data && k->kind == PICKLE_KIND_STR && v->kind == PICKLE_KIND_INT) {
      sink->number(sink->ctx, k->s, v->i);
    } else if (to_label || to_id || k->kind != PICKLE_KIND_STR) {
      return PICKLE_STEP_BAD;
    }
  }
  m->n = first;
  return PICKLE_STEP_GO;
}

static pickle_step pickle_set_items(pickle_machine *m) {
  size_t mark = m->n;
  while (mark > 0 && m->stack[mark - 1].kind != PICKLE_KIND_MARK) mark--;
  if (mark < 2 || m->stack[mark - 2].kind != PICKLE_KIND_DICT) return PICKLE_STEP_BAD;
  pickle_step s = pickle_emit_items(m, mark - 2, mark);
  m->n = mark - 1;
  return s;
}

static pickle_step pickle_set_item(pickle_machine *m) {
  if (m->n < 3 || m->stack[m->n - 3].kind != PICKLE_KIND_DICT) return PICKLE_STEP_BAD;
  return pickle_emit_items(m, m->n - 3, m->n - 2);
}

/* Objects: the class by name, an empty instance, its fields. Nothing is created: they are only markers on the stack. */
static pickle_step pickle_run_object_op(pickle_machine *m, unsigned op) {
  lode_str module, name;
  switch (op) {
    case PICKLE_GLOBAL:
      if (!pickle_read_line(m, &module) || !pickle_read_line(m, &name) || !pickle_is_class(module, name))
        return PICKLE_STEP_BAD;
      return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_CLASS});
    case PICKLE_STACK_GLOBAL:
      if (m->n < 2 || m->stack[m->n - 1].kind != PICKLE_KIND_STR || m->stack[m->n - 2].kind != PICKLE_KIND_STR)
        return PICKLE_STEP_BAD;
      if (!pickle_is_class(m->stack[m->n - 2].s, m->stack[m->n - 1].s)) return PICKLE_STEP_BAD;
      m->n -= 2;
      return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_CLASS});
    case PICKLE_NEWOBJ:
      if (m->n < 2 || m->stack[m->n - 1].kind != PICKLE_KIND_TUPLE || m->stack[m->n - 2].kind != PICKLE_KIND_CLASS)
        return PICKLE_STEP_BAD;
      m->n -= 2;
      return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_OBJECT});
    default:
      if (m->n < 2 || m->stack[m->n - 1].kind != PICKLE_KIND_DICT || m->stack[m->n - 2].kind != PICKLE_KIND_OBJECT)
        return PICKLE_STEP_BAD;
      m->n--;
      return PICKLE_STEP_GO;
  }
}

static pickle_step pickle_run_op(pickle_machine *m) {
  uint64_t u;
  if (m->at == m->end) return PICKLE_STEP_BAD;
  unsigned op = *m->at++;
  switch (op) {
    case PICKLE_PROTO: return pickle_read_number(m, 1, &u) && u >= 2 && u <= 5 ? PICKLE_STEP_GO : PICKLE_STEP_BAD;
    case PICKLE_FRAME: return pickle_read_number(m, 8, &u) ? PICKLE_STEP_GO : PICKLE_STEP_BAD;
    case PICKLE_STOP:
      return m->n == 1 && (m->stack[0].kind == PICKLE_KIND_DICT || m->stack[0].kind == PICKLE_KIND_OBJECT)
                 ? PICKLE_STEP_STOP
                 : PICKLE_STEP_BAD;
    case PICKLE_MARK: return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_MARK});
    case PICKLE_NONE: return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_NONE});
    case PICKLE_EMPTY_DICT: return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_DICT});
    case PICKLE_EMPTY_TUPLE: return pickle_push(m, (pickle_value){.kind = PICKLE_KIND_TUPLE});
    case PICKLE_BININT: return pickle_push_int(m, 4, true);
    case PICKLE_BININT1: return pickle_push_int(m, 1, false);
    case PICKLE_BININT2: return pickle_push_int(m, 2, false);
    case PICKLE_LONG1: return pickle_read_number(m, 1, &u) ? pickle_push_int(m, (size_t)u, true) : PICKLE_STEP_BAD;
    case PICKLE_BINUNICODE: return pickle_push_string(m, 4);
    case PICKLE_SHORT_BINUNICODE: return pickle_push_string(m, 1);
    case PICKLE_BINUNICODE8: return pickle_push_string(m, 8);
    case PICKLE_SETITEM: return pickle_set_item(m);
    case PICKLE_SETITEMS: return pickle_set_items(m);
    case PICKLE_MEMOIZE: return pickle_memo_put(m, m->n_memo);
    case PICKLE_BINPUT: return pickle_read_number(m, 1, &u) ? pickle_memo_put(m, u) : PICKLE_STEP_BAD;
    case PICKLE_LONG_BINPUT: return pickle_read_number(m, 4, &u) ? pickle_memo_put(m, u) : PICKLE_STEP_BAD;
    case PICKLE_BINGET: return pickle_memo_get(m, 1);
    case PICKLE_LONG_BINGET: return pickle_memo_get(m, 4);
    case PICKLE_GLOBAL:
    case PICKLE_STACK_GLOBAL:
    case PICKLE_NEWOBJ:
    case PICKLE_BUILD: return pickle_run_object_op(m, op);
    default: return PICKLE_STEP_BAD;
  }
}

lode_status rescue_pickle_read(lode_str bytes, const rescue_pickle_sink *sink, lode_error *err) {
  const unsigned char *begin = (const unsigned char *)bytes.data;
  pickle_machine m = {.at = begin, .end = begin + bytes.len, .sink = sink};
  pickle_step s = PICKLE_STEP_GO;
  size_t op_at = 0;
  while (s == PICKLE_STEP_GO) {
    op_at = (size_t)(m.at - begin);
    s = pickle_run_op(&m);
  }
  mem_free(m.stack);
  mem_free(m.memo);
  if (s == PICKLE_STEP_NOMEM) return err_nomem(err);
  if (s == PICKLE_STEP_BAD) return err_set(err, LODE_CORRUPT, "the pickle makes no sense from byte %zu on", op_at);
  return LODE_OK;
}

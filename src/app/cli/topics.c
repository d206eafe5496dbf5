/* SPDX-License-Identifier: Apache-2.0 */
/* topics.c - the pages of `lode help TOPIC` that are not about a command. They are also part of the manual page, so
 * they are plain paragraphs: a line that begins with two spaces is kept as is. */
#include "cli/cli_help.h"

static const struct {
  const char *name, *about, *text;
} topics[] = {
    {"bugs", "where to report them, and what to send",
     "Crashes, wrong answers, lost data and errors that say \"a bug in lode\" are bugs. Report them where you got Lode "
     "from: in the issues of the repository that it was built from, or to the distribution that packaged it. Report "
     "security problems privately; SECURITY.md of the source says how.\n"
     "\n"
     "Send the output of `lode --version`, what you ran, what you expected and what happened instead. After a crash "
     "of a server, send the report that the message names. For a store that is damaged or gives wrong answers, the "
     "output of `lode db verify --json` and `lode db stats --json` helps most; the store itself holds your documents, "
     "so nobody asks for it. Keep a copy of it as it is: `lode db salvage` reads it without changing it."},
    {"exit-codes", "what the exit codes mean",
     "  0    done\n"
     "  1    nothing found: no such store, collection or record, or no record matches;\n"
     "       of `lode search` also: nothing matches well, what is shown is the nearest there is\n"
     "  2    wrong usage: an unknown command or flag, a malformed argument or filter\n"
     "  3    damaged: `lode db verify` reports what is damaged, `lode db salvage` copies what can be read\n"
     "  4    busy: another process held the lock for longer than --busy-ms\n"
     "  5    refused: a record that may not be written (malformed, not finite, wrong dimension, other\n"
     "       embedding model), a name that exists, a limit, a newer format, a read-only store, a store\n"
     "       that was removed while open, or the system failed (input/output, space, memory)\n"
     "  6    the project is not indexed: run `lode index`\n"
     "  130  interrupted (Ctrl-C; 143 by SIGTERM, 129 by SIGHUP); what was acknowledged is kept, the\n"
     "       running batch is not\n"
     "\n"
     "When the reader of a pipe goes away (head), the command ends quietly with 0. With --json an error is also one "
     "line on "
     "standard error: {\"error\":{\"status\":\"NOT_FOUND\",\"message\":\"...\"}}, with \"record\" where one record of "
     "the input is "
     "at fault, counted from 0."},
    {"filters", "how --where and --where-document select records",
     "--where looks at metadata. Several keys, or several operators of a key, mean all of them.\n"
     "\n"
     "  {\"lang\":\"c\"}                             the value is \"c\"\n"
     "  {\"size\":{\"$gte\":10,\"$lt\":20}}           $eq $ne $gt $gte $lt $lte\n"
     "  {\"lang\":{\"$in\":[\"c\",\"h\"]}}              $in $nin\n"
     "  {\"tags\":{\"$contains\":\"new\"}}            the value is an array that has it; $not_contains\n"
     "  {\"$or\":[{\"a\":1},{\"$not\":{\"b\":true}}]}   $and $or $not\n"
     "  {}                                       all records\n"
     "\n"
     "$ne, $nin and $not_contains match records without the key. Integers and doubles compare by value; values of "
     "different kinds are never equal and never ordered.\n"
     "\n"
     "--where-document looks at the text, by bytes, case included.\n"
     "\n"
     "  {\"$contains\":\"TODO\"}                     $not_contains\n"
     "  {\"$regex\":\"^#include <.*>\"}              PCRE2; $not_regex\n"
     "  {\"$and\":[...]}                           $and $or $not\n"
     "\n"
     "The key \"#document\" in --where takes a document filter. Anything unknown is an error that names it. On the "
     "command line a filter may be the text itself, @FILE, or - for standard input."},
    {"records", "what add, upsert, update and import read",
     "One JSON object per line:\n"
     "\n"
     "  {\"id\":\"a\",\"document\":\"text\",\"metadata\":{\"lang\":\"c\",\"n\":1},\"embedding\":[0.1,0.2]}\n"
     "\n"
     "The id is 1 to 4,096 bytes of UTF-8. Everything else is optional. Metadata values are strings, 64-bit integers, "
     "doubles, "
     "booleans, or arrays of one of those kinds. A record without an embedding is pending: `lode db get NAME "
     "--pending` "
     "lists those, and an update brings the vectors. The first vector fixes the collection's dimension. NaN, "
     "infinities, "
     "another dimension, invalid UTF-8 and malformed JSON are refused, naming the record, and nothing of that batch is "
     "written."},
    {"store", "where the store is",
     "A store is a folder. --store DIR names it; otherwise it is the nearest folder called .lode in the working "
     "directory "
     "or above it, else $XDG_DATA_HOME/lode, else ~/.local/share/lode.\n"
     "\n"
     "The search upward ends at the first folder that has a .git, be it a repository, a submodule or a worktree: each "
     "has a .lode of its own. A .git of "
     "another user ends it as well, and nothing of it is read. A .lode of another user, or one that others may write, "
     "is passed over; a group may "
     "write if it is the owner's private one, as under umask 002. A .lode that git tracks is refused until you run "
     "`lode trust` (see lode help trust). "
     "LODE_TRUST=1 in the environment switches these rules off, for containers. What --store names is always used.\n"
     "\n"
     "`lode db create`, and add, upsert and import with --create, make the store if there is none; no other command "
     "does. Commands "
     "that read never write to it, not even to recover. Many processes may use a store at once."},
};

const char *cli_topic_name(size_t i) { return i < sizeof topics / sizeof *topics ? topics[i].name : NULL; }
const char *cli_topic_about(size_t i) { return topics[i].about; }
const char *cli_topic_text(size_t i) { return topics[i].text; }

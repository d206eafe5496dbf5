/* SPDX-License-Identifier: Apache-2.0 */
/* sandbox.c - see sandbox.h.
 *
 * Landlock: files may be read everywhere, and written only below the store, the temporary folder, the user's cache
 * and, for a front end, the folder of crash reports. No TCP port is opened besides those that are open already;
 * connections to others are not limited, because a model or the store may be on a server. seccomp: system calls that
 * are never needed here and that kernel exploits use fail with EPERM. Both are inherited by child processes. Lode does
 * not rely on either; they limit the damage of a bug.
 */
#include "platform/sandbox.h"

#include "platform/platform_internal.h"
#include "platform/sanitized.h"

#include <stdio.h>

#if OS_LINUX

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Landlock ---- */

#ifndef LANDLOCK_ACCESS_FS_REFER
#define LANDLOCK_ACCESS_FS_REFER (1ULL << 13)
#endif
#ifndef LANDLOCK_ACCESS_FS_TRUNCATE
#define LANDLOCK_ACCESS_FS_TRUNCATE (1ULL << 14)
#endif

/* Of newer kernels' <linux/landlock.h>: ABI 4. */
#ifndef LANDLOCK_ACCESS_NET_BIND_TCP
#define LANDLOCK_ACCESS_NET_BIND_TCP (1ULL << 0)
#endif
typedef struct sandbox_rights {
  uint64_t files, net;
} sandbox_rights;

static uint64_t sandbox_write_access(int abi) {
  uint64_t access = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                    LANDLOCK_ACCESS_FS_MAKE_SYM;
  if (abi >= 2) access |= LANDLOCK_ACCESS_FS_REFER;
  if (abi >= 3) access |= LANDLOCK_ACCESS_FS_TRUNCATE;
  return access;
}

/* `flags`: O_NOFOLLOW | O_DIRECTORY for a name inside the store, which anybody may have created. */
static bool sandbox_allow_below(int rules, const char *path, int flags, uint64_t access) {
  struct landlock_path_beneath_attr below = {.allowed_access = access};
  below.parent_fd = open(path, O_PATH | O_CLOEXEC | flags);
  if (below.parent_fd < 0) return false;
  bool added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0;
  close(below.parent_fd);
  return added;
}

/* "" if it is in force, else the reason why not. A store without a folder cannot be written. */
static const char *landlock(const char *store, const char *crashes) {
  const char *tmp = getenv("TMPDIR"), *home = getenv("HOME"), *cache = getenv("XDG_CACHE_HOME");
  char path[4096];
  int abi = (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1) return "the kernel has none";
  sandbox_rights denied = {sandbox_write_access(abi), LANDLOCK_ACCESS_NET_BIND_TCP};
  int rules = (int)syscall(SYS_landlock_create_ruleset, &denied, abi >= 4 ? sizeof denied : sizeof denied.files, 0);
  if (rules < 0) return "it cannot be set up";
  (void)sandbox_allow_below(rules, store, 0, sandbox_write_access(abi));
  if (crashes) (void)sandbox_allow_below(rules, crashes, O_NOFOLLOW | O_DIRECTORY, sandbox_write_access(abi));
  (void)sandbox_allow_below(rules, "/dev/null", 0, LANDLOCK_ACCESS_FS_WRITE_FILE);
  (void)sandbox_allow_below(rules, tmp && *tmp ? tmp : "/tmp", 0, sandbox_write_access(abi));
  if (cache && *cache)
    snprintf(path, sizeof path, "%s", cache);
  else
    snprintf(path, sizeof path, "%s/.cache", home ? home : "");
  (void)sandbox_allow_below(rules, path, 0, sandbox_write_access(abi)); /* models live there, if it exists */
  bool in_force = syscall(SYS_landlock_restrict_self, rules, 0) == 0;
  close(rules);
  return in_force ? "" : "it was refused";
}

/* ---- seccomp ---- */

#if defined(__x86_64__)
#define SANDBOX_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SANDBOX_ARCH AUDIT_ARCH_AARCH64
#endif
/* x32 calls have it in their numbers; no call of another kind has a number that high. */
#define SANDBOX_X32_BIT 0x40000000u

/* Calls of another architecture (i386, by int 0x80) and of x32 are denied: their numbers are others. */
static const char *seccomp(void) {
#ifdef SANDBOX_ARCH
  static const int denied[] = {
#if !BUILD_ASAN /* its leak check uses ptrace */
    SYS_ptrace,
#endif
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_unshare,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_sethostname,
    SYS_setdomainname,
    SYS_settimeofday,
    SYS_clock_settime,
    SYS_acct,
    SYS_quotactl,
    SYS_open_by_handle_at,
    SYS_io_uring_setup
  };
  enum { N = sizeof denied / sizeof *denied };
  struct sock_filter code[N + 6];
  size_t n = 0;
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
  code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SANDBOX_ARCH, 0, N + 3);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SANDBOX_X32_BIT, N + 1, 0);
  for (size_t i = 0; i < N; i++)
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)denied[i], (unsigned char)(N - i), 0);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
  /* applies to all threads: some may already be running */
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0 ? ""
                                                                                                 : "it was refused";
#else
  return "not for this architecture";
#endif
}

/* Landlock binds the calling thread and those that it starts later. */
static bool sandbox_is_alone(void) {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink <= 3; /* ".", "..", one thread */
}

void os_sandbox(const char *store, const char *crashes, char *summary, size_t size) {
  struct rlimit none = {0, 0};
  bool privs = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  bool alone = sandbox_is_alone(), cores = setrlimit(RLIMIT_CORE, &none) == 0;
  const char *files = privs ? landlock(store, crashes) : "no_new_privs is off", *calls = privs ? seccomp() : files;
  snprintf(summary, size, "no_new_privs %s, core dumps %s, Landlock %s%s%s, seccomp %s%s%s", privs ? "on" : "off",
           cores ? "off" : "as they were",
           *files  ? "off ("
           : alone ? "on"
                   : "on for new threads only",
           files, *files ? ")" : "", *calls ? "off (" : "on", calls, *calls ? ")" : "");
}

#else

#include <sys/resource.h>

void os_sandbox(const char *store, const char *crashes, char *summary, size_t size) {
  struct rlimit none = {0, 0};
  bool cores = setrlimit(RLIMIT_CORE, &none) == 0;
  (void)store, (void)crashes;
  snprintf(summary, size, "core dumps %s, no sandbox: this platform (" OS_NAME ") has none",
           cores ? "off" : "as they were");
}

#endif

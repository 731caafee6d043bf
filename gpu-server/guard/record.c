/* Records that outlive the guard: its identity, what it started, how that ended. Files of the current folder
 * with `key value` lines. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXIT_BYTES 256

static void boot_id(char *text, size_t size) {
  int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? 0 : read(file, text, size - 1);
  if (file >= 0) close(file);
  text[n < 0 ? 0 : n] = 0;
  text[strcspn(text, "\n")] = 0;
}

static bool sync_folder(void) {
  int folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  bool is_synced = fsync(folder) == 0;
  close(folder);
  return is_synced;
}

static bool write_file(const char *name, int flags, bool is_durable, const char *text, size_t size) {
  int file = open(name, O_WRONLY | O_CLOEXEC | flags, 0600);
  if (file < 0) return false;
  bool is_written = write(file, text, size) == (ssize_t)size && (!is_durable || fsync(file) == 0);
  return close(file) == 0 && is_written;
}

/* Only one claims the folder: this guard, or a server that found no guard in it and cancelled the attempt. */
bool record_claim(void) {
  char text[160], boot[64];
  boot_id(boot, sizeof boot);
  int size = snprintf(text, sizeof text, "guard %d %llu\nboot %s\n", (int)getpid(), (unsigned long long)start_time(getpid()), boot);
  if (!write_file("guard.new", O_CREAT | O_TRUNC, false, text, (size_t)size)) return false;
  bool is_claimed = link("guard.new", "guard") == 0;
  int error = errno;
  unlink("guard.new");
  errno = error;
  return is_claimed;
}

bool record_started(const struct spec *spec, const struct keeper *keeper) {
  char text[5120], boot[64];
  boot_id(boot, sizeof boot);
  int size = snprintf(text, sizeof text,
    "task %s\nattempt %s\nguard %d %llu\nkeeper %d %llu\ncommand %d %llu\ncgroup %s\nisolated %d\nboot %s\n",
    spec->task, spec->attempt, (int)getpid(), (unsigned long long)start_time(getpid()), (int)keeper->pid,
    (unsigned long long)start_time(keeper->pid), (int)keeper->command, (unsigned long long)start_time(keeper->command),
    spec->folder_cgroup, keeper->is_isolated, boot);
  return size < (int)sizeof text && write_file("started.new", O_CREAT | O_TRUNC, true, text, (size_t)size) &&
         rename("started.new", "started") == 0 && sync_folder();
}

/* Allocates its blocks now, so that the record can be written even if the disk is full at the end. */
bool record_reserve_exit(void) {
  char blank[EXIT_BYTES];
  memset(blank, '\n', sizeof blank);
  return write_file("exit.new", O_CREAT | O_TRUNC, false, blank, sizeof blank);
}

void exit_text(char *text, size_t size, int status) {
  if (WIFSIGNALED(status)) snprintf(text, size, "signal %d", WTERMSIG(status));
  else snprintf(text, size, "code %d", WEXITSTATUS(status));
}

bool record_exit(int status, const struct end *end) {
  char text[EXIT_BYTES], how[32];
  exit_text(how, sizeof how, status);
  int size = snprintf(text, sizeof text, "%s\nlease %d\norder %d\nran %d\nmemory %d\ndropped %llu\n", how, end->by_lease, end->by_order,
    !end->never_ran, end->by_memory, (unsigned long long)output_dropped());
  memset(text + size, '\n', sizeof text - (size_t)size);
  return write_file("exit.new", 0, true, text, sizeof text) && rename("exit.new", "exit") == 0 && sync_folder();
}

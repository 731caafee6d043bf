/*
 * State that the stub libraries and the tests share: small text files in the folder STUB_STATE.
 *   driver               version of the driver
 *   gpu-<i>              "<total MiB> <reserved MiB> <base MiB> <utilization> <mig> <uuid> <name>"; base: held by nobody that is listed
 *   process-<pid>        "<state> <kind> <utilization> <MiB on GPU 0> <MiB on GPU 1> ..."; kind c, g or m; MiB -1: not told
 *   thread-<pid>         its thread that works for the driver
 *   vram-<pid>-<gpu>     contents of its memory, as far as anybody looks at them
 *   real-<pid>           the process is one of the system's: it holds nothing once it has ended
 *   rule-<function>      what the function does instead: "code <n>", "hang", "crash", "once <n>" or "once crash" (the next call), or "wait" (until the file is gone);
 *   rule-<function>-<pid>  the same, for one process
 *   calls                a line for every call that changes or asks about a process
 */
#ifndef STUB_STATE_H
#define STUB_STATE_H
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_STUB_GPUS 16
#define MIB (1024ULL * 1024ULL)

struct stub_gpu {
  long total, reserved, base, utilization, mig;
  char uuid[96], name[96];
};

struct stub_process {
  int pid, state;
  char kind;
  int utilization;
  long mib[MAX_STUB_GPUS];
};

static inline int stub_read(const char *name, char *text, size_t size) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", STUB_STATE, name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  ssize_t length = read(file, text, size - 1);
  close(file);
  text[length < 0 ? 0 : length] = 0;
  return 0;
}

/* Whole or not at all, for whoever reads it meanwhile. */
static inline void stub_write(const char *name, const char *text) {
  char path[4096], fresh[4200];
  snprintf(path, sizeof path, "%s/%s", STUB_STATE, name);
  snprintf(fresh, sizeof fresh, "%s/fresh-%d-%s", STUB_STATE, (int)getpid(), name);
  FILE *file = fopen(fresh, "w");
  if (!file) return;
  fputs(text, file);
  fclose(file);
  rename(fresh, path);
}

static inline void stub_log(const char *format, ...) {
  char path[4096], line[256];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  snprintf(path, sizeof path, "%s/calls", STUB_STATE);
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return;
  if (write(file, line, (size_t)length) < 0) abort();
  close(file);
}

/* The code that the call shall answer with, or -1: as it would. */
static inline int stub_rule_named(const char *name) {
  char text[64];
  for (;;) {
    int code;
    if (stub_read(name, text, sizeof text) != 0) return -1;
    if (sscanf(text, "code %d", &code) == 1) return code;
    if (strncmp(text, "once ", 5) == 0) {
      char path[4096];
      snprintf(path, sizeof path, "%s/%s", STUB_STATE, name);
      unlink(path);
      memmove(text, text + 5, sizeof text - 5);
      if (sscanf(text, "%d", &code) == 1) return code;
    }
    if (strncmp(text, "crash", 5) == 0) abort();
    if (strncmp(text, "hang", 4) == 0)
      for (;;) pause();
    usleep(1000);
  }
}

static inline int stub_rule(const char *function, int pid) {
  char name[256];
  snprintf(name, sizeof name, "rule-%s-%d", function, pid);
  int code = stub_rule_named(name);
  if (code >= 0) return code;
  snprintf(name, sizeof name, "rule-%s", function);
  return stub_rule_named(name);
}

static inline int stub_gpu_at(int index, struct stub_gpu *gpu) {
  char name[32], text[512];
  snprintf(name, sizeof name, "gpu-%d", index);
  if (stub_read(name, text, sizeof text) != 0) return -1;
  memset(gpu, 0, sizeof *gpu);
  return sscanf(text, "%ld %ld %ld %ld %ld %95s %95[^\n]", &gpu->total, &gpu->reserved, &gpu->base, &gpu->utilization, &gpu->mig, gpu->uuid, gpu->name) == 7 ? 0 : -1;
}

static inline int stub_gpu_count(void) {
  struct stub_gpu gpu;
  int count = 0;
  while (count < MAX_STUB_GPUS && stub_gpu_at(count, &gpu) == 0) count++;
  return count;
}

static inline int stub_process_at(int pid, struct stub_process *process) {
  char name[32], text[512];
  snprintf(name, sizeof name, "process-%d", pid);
  if (stub_read(name, text, sizeof text) != 0) return -1;
  memset(process, 0, sizeof *process);
  process->pid = pid;
  char *rest = text;
  process->state = (int)strtol(rest, &rest, 10);
  while (*rest == ' ') rest++;
  process->kind = *rest++;
  process->utilization = (int)strtol(rest, &rest, 10);
  for (int gpu = 0; gpu < MAX_STUB_GPUS; gpu++) process->mib[gpu] = strtol(rest, &rest, 10);
  return 0;
}

static inline void stub_store(const struct stub_process *process) {
  char name[32], text[512];
  snprintf(name, sizeof name, "process-%d", process->pid);
  int length = snprintf(text, sizeof text, "%d %c %d", process->state, process->kind, process->utilization);
  for (int gpu = 0; gpu < MAX_STUB_GPUS; gpu++) length += snprintf(text + length, sizeof text - (size_t)length, " %ld", process->mib[gpu]);
  stub_write(name, text);
}

static inline int stub_has_ended(int pid) {
  char name[32], text[8];
  snprintf(name, sizeof name, "real-%d", pid);
  return stub_read(name, text, sizeof text) == 0 && kill(pid, 0) != 0;
}

/* Every process that there is a file of; how many. One whose memory is on the host (state 2) holds nothing. */
static inline int stub_processes(struct stub_process *found, int room) {
  DIR *folder = opendir(STUB_STATE);
  if (!folder) return 0;
  int count = 0, pid;
  struct dirent *entry;
  while (count < room && (entry = readdir(folder)) != NULL) {
    if (sscanf(entry->d_name, "process-%d", &pid) != 1 || stub_process_at(pid, &found[count]) != 0) continue;
    if (found[count].state != 2 && !stub_has_ended(pid)) count++;
  }
  closedir(folder);
  return count;
}

static inline long stub_free_mib(int index) {
  struct stub_process found[1024];
  struct stub_gpu gpu;
  if (stub_gpu_at(index, &gpu) != 0) return 0;
  long free_mib = gpu.total - gpu.reserved - gpu.base;
  int count = stub_processes(found, 1024);
  for (int entry = 0; entry < count; entry++)
    if (found[entry].mib[index] > 0) free_mib -= found[entry].mib[index];
  return free_mib < 0 ? 0 : free_mib;
}
#endif

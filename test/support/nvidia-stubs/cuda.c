/*
 * A stand-in for libcuda: the checkpoint functions as a state machine per process, and as much memory management as a small program needs, on the host.
 * Compiled with OLD_CUDA it has no checkpoint functions. Like the driver it does its work on a process in a thread of that process, and waits while that is stopped.
 */
#include "stub-state.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, OPERATING_SYSTEM = 304, ILLEGAL_STATE = 401 };
enum { RUNNING, LOCKED, CHECKPOINTED, FAILED };

#define COPY_US 60000
#define RULED(pid) do { int code = stub_rule(__func__, pid); if (code >= 0) return code; } while (0)

static int is_initialized;

int cuInit(unsigned flags) {
  stub_log("%s\n", __func__);
  RULED(0);
  if (flags != 0) return INVALID;
  is_initialized = 1;
  return OK;
}

#ifndef OLD_CUDA
/* After a restore that has failed once none succeeds. */
static int is_stuck(int pid) {
  char name[32], text[8];
  snprintf(name, sizeof name, "stuck-%d", pid);
  return stub_read(name, text, sizeof text) == 0;
}

static int restore_thread(int pid) {
  char name[32], text[32];
  snprintf(name, sizeof name, "thread-%d", pid);
  return stub_read(name, text, sizeof text) == 0 ? atoi(text) : pid + 1;
}

static int is_stopped(int pid, int thread) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length < 0 ? 0 : length] = 0;
  char *name_end = strrchr(text, ')');
  return name_end != NULL && (name_end[2] == 'T' || name_end[2] == 't');
}

/* Its memory is neither here nor there for that long, if it is a process of the system's. */
static void copy(int pid) {
  char name[32], text[8];
  snprintf(name, sizeof name, "real-%d", pid);
  if (stub_read(name, text, sizeof text) == 0) usleep(COPY_US);
}

static int begin(const char *call, int pid, struct stub_process *process) {
  if (!is_initialized) return NOT_INITIALIZED;
  stub_log("%s %d\n", call, pid);
  if (strcmp(call, "thread") != 0)
    while (is_stopped(pid, restore_thread(pid))) usleep(1000);
  return stub_process_at(pid, process) == 0 ? OK : INVALID;
}

static int is_zero(const unsigned char *bytes, int from, int to) {
  while (from < to)
    if (bytes[from++] != 0) return 0;
  return 1;
}

#define BEGIN(call) \
  struct stub_process process; \
  int begun = begin(call, pid, &process); \
  if (begun != OK) return begun; \
  RULED(pid)

int cuCheckpointProcessGetState(int pid, int *state) {
  BEGIN("state");
  *state = process.state;
  return OK;
}

int cuCheckpointProcessGetRestoreThreadId(int pid, int *thread) {
  BEGIN("thread");
  *thread = restore_thread(pid);
  return OK;
}

int cuCheckpointProcessLock(int pid, unsigned char *args) {
  BEGIN("lock");
  uint32_t timeout;
  memcpy(&timeout, args, sizeof timeout);
  if (timeout == 0 || !is_zero(args, 4, 64)) return INVALID;
  if (process.state != RUNNING) return ILLEGAL_STATE;
  process.state = LOCKED;
  stub_store(&process);
  return OK;
}

int cuCheckpointProcessCheckpoint(int pid, unsigned char *args) {
  BEGIN("checkpoint");
  if (!is_zero(args, 0, 64)) return INVALID;
  if (process.state != LOCKED) return ILLEGAL_STATE;
  process.state = CHECKPOINTED;
  stub_store(&process);
  copy(pid);
  return OK;
}

int cuCheckpointProcessRestore(int pid, unsigned char *args) {
  BEGIN("restore");
  if (!is_zero(args, 0, 64)) return INVALID;
  if (is_stuck(pid)) return OPERATING_SYSTEM;
  if (process.state != CHECKPOINTED) return ILLEGAL_STATE;
  for (int gpu = 0; gpu < MAX_STUB_GPUS; gpu++) {
    if (process.mib[gpu] > 0 && process.mib[gpu] > stub_free_mib(gpu)) {
      char name[32];
      snprintf(name, sizeof name, "stuck-%d", pid);
      stub_write(name, "1");
      return OUT_OF_MEMORY;
    }
  }
  copy(pid);
  process.state = LOCKED;
  stub_store(&process);
  return OK;
}

int cuCheckpointProcessUnlock(int pid, unsigned char *args) {
  BEGIN("unlock");
  if (!is_zero(args, 0, 64)) return INVALID;
  if (process.state != LOCKED) return ILLEGAL_STATE;
  process.state = RUNNING;
  stub_store(&process);
  return OK;
}
#endif

/* ---- memory, for programs under test; a call of a held process waits until it is let go ---- */

static int own_gpu(void) {
  const char *visible = getenv("CUDA_VISIBLE_DEVICES");
  struct stub_gpu gpu;
  for (int index = 0; visible && stub_gpu_at(index, &gpu) == 0; index++)
    if (strcmp(gpu.uuid, visible) == 0) return index;
  return 0;
}

static void own(struct stub_process *process) {
  for (;;) {
    if (stub_process_at((int)getpid(), process) != 0) *process = (struct stub_process){.pid = (int)getpid(), .kind = 'c'};
    if (process->state == RUNNING) return;
    usleep(1000);
  }
}

static void *copy_for_others(void *nothing) {
  char name[32], text[32];
  snprintf(name, sizeof name, "thread-%d", (int)getpid());
  snprintf(text, sizeof text, "%ld", (long)syscall(SYS_gettid));
  stub_write(name, text);
  for (;;) pause();
  return nothing;
}

int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return ordinal == 0 ? OK : INVALID;
}

int cuCtxCreate_v2(void **context, unsigned flags, int device) {
  (void)flags, (void)device;
  struct stub_process process;
  own(&process);
  process.mib[own_gpu()] += 1;
  stub_store(&process);
  char name[32];
  snprintf(name, sizeof name, "real-%d", (int)getpid());
  stub_write(name, "1");
  pthread_t thread;
  if (pthread_create(&thread, NULL, copy_for_others, NULL) != 0) return OPERATING_SYSTEM;
  *context = &is_initialized;
  return OK;
}

int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) {
  struct stub_process process;
  own(&process);
  long mib = (long)((bytes + MIB - 1) / MIB);
  if (mib > stub_free_mib(own_gpu())) return OUT_OF_MEMORY;
  void *memory = malloc(bytes);
  if (!memory) return OUT_OF_MEMORY;
  process.mib[own_gpu()] += mib;
  stub_store(&process);
  *pointer = (unsigned long long)(uintptr_t)memory;
  return OK;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes) {
  struct stub_process process;
  own(&process);
  memcpy((void *)(uintptr_t)to, from, bytes);
  return OK;
}

/* The rule "code 0" makes it return other bytes than were written. */
int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes) {
  struct stub_process process;
  own(&process);
  int code = stub_rule(__func__, (int)getpid());
  if (code > 0) return code;
  memcpy(to, (void *)(uintptr_t)from, bytes);
  if (code == 0) ((unsigned char *)to)[0] ^= 1;
  return OK;
}

int cuCtxSetCurrent(void *context) { return context == &is_initialized ? OK : INVALID; }

/* As driver 580.159.04: it does not wait for a process whose memory is elsewhere to come back. */
int cuCtxSynchronize(void) {
  struct stub_process process;
  if (stub_process_at((int)getpid(), &process) == 0 && process.state == 2) raise(SIGSEGV);
  return OK;
}

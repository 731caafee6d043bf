/*
 * A stand-in for libcuda: the checkpoint functions as a state machine per process, and as much memory management as a small program needs, on the host.
 * Compiled with OLD_CUDA it has no checkpoint functions, with CUDA_VERSION below 13040 no custom storage. Like the driver it does its work on a process in a thread of that process, and waits while that is stopped.
 */
#include "stub-state.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef CUDA_VERSION
#define CUDA_VERSION 13040
#endif

enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201, OPERATING_SYSTEM = 304, ILLEGAL_STATE = 401, NOT_READY = 600 };
enum { RUNNING, LOCKED, CHECKPOINTED, FAILED, CHECKPOINTING, RESTORING };

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

/* ---- contents of GPU memory: the file vram-<pid>-<gpu>; out of it by the driver's own method: host-<pid>-<gpu> ---- */

static void contents_path(char *path, size_t size, const char *place, int pid, int gpu) {
  snprintf(path, size, "%s/%s-%d-%d", STUB_STATE, place, pid, gpu);
}

static size_t contents_size(int pid, int gpu) {
  char path[4096];
  struct stat facts;
  contents_path(path, sizeof path, "vram", pid, gpu);
  return stat(path, &facts) == 0 ? (size_t)facts.st_size : 0;
}

/* Maps them; size 0: there are none. */
static unsigned char *contents(const char *place, int pid, int gpu, size_t size) {
  char path[4096];
  contents_path(path, sizeof path, place, pid, gpu);
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, (off_t)size) != 0) abort();
  void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (at == MAP_FAILED) abort();
  return at;
}

/* What a GPU has where nothing was copied to. */
static void spoil(unsigned char *bytes, size_t size) { memset(bytes, 0xee, size); }

static void move_contents(int pid, const char *from, const char *to) {
  for (int gpu = 0; gpu < MAX_STUB_GPUS; gpu++) {
    size_t size = contents_size(pid, gpu);
    if (size == 0) continue;
    unsigned char *source = contents(from, pid, gpu, size), *target = contents(to, pid, gpu, size);
    memcpy(target, source, size);
    spoil(source, size);
    munmap(source, size), munmap(target, size);
  }
}

#define BEGIN(call) \
  struct stub_process process; \
  int begun = begin(call, pid, &process); \
  if (begun != OK) return begun; \
  RULED(pid)

static int begin_storage(struct stub_process *process, const unsigned char *out, int state);

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
  if (!is_zero(args, sizeof(void *), 64)) return INVALID;
  if (process.state != LOCKED) return ILLEGAL_STATE;
  if (!is_zero(args, 0, sizeof(void *))) return begin_storage(&process, args, CHECKPOINTING);
  move_contents(pid, "vram", "host");
  process.state = CHECKPOINTED;
  stub_store(&process);
  copy(pid);
  return OK;
}

int cuCheckpointProcessRestore(int pid, unsigned char *args) {
  BEGIN("restore");
  if (!is_zero(args, 0, 16) || !is_zero(args, 16 + sizeof(void *), 64)) return INVALID;
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
  if (!is_zero(args, 16, 64)) return begin_storage(&process, args + 16, RESTORING);
  move_contents(pid, "host", "vram");
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

/* ---- custom storage: another process's memory, mapped into this one ---- */

struct per_device { unsigned long long address; size_t size; void *stream; };
struct storage { void *handle; struct per_device *devices; unsigned count; };
/* So that a handle is not the address of its description. */
struct operation { struct storage storage; struct per_device devices[MAX_STUB_GPUS]; int gpus[MAX_STUB_GPUS]; int pid; };
struct copy { void *to; const void *from; size_t size; struct copy *next; };
struct gpu { int is_retained; int has_waited; struct copy *copies; };

static struct gpu gpus[MAX_STUB_GPUS];
static struct { unsigned char *at; size_t size; } pinned[65536];
static int pinned_count;
static pthread_mutex_t storage_lock = PTHREAD_MUTEX_INITIALIZER;
static __thread struct gpu *current;

int cuDeviceGetCount(int *count) {
  *count = stub_gpu_count();
  return OK;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  struct stub_gpu gpu;
  if (stub_gpu_at(device, &gpu) != 0) return INVALID;
  int bytes = 0;
  for (const char *text = gpu.uuid + 4; *text && bytes < 16; text++) {
    if (*text == '-') continue;
    unsigned value;
    if (sscanf(text, "%2x", &value) != 1) return INVALID;
    uuid[bytes++] = (unsigned char)value;
    text++;
  }
  return bytes == 16 ? OK : INVALID;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  stub_log("retain %d\n", device);
  gpus[device].is_retained = 1;
  *context = &gpus[device];
  return OK;
}

int cuStreamGetDevice(void *stream, int *device) {
  *device = (int)((struct gpu *)stream - gpus);
  return OK;
}

int cuMemHostRegister_v2(void *at, size_t size, unsigned flags) {
  RULED(0);
  if (!current) return INVALID_CONTEXT;
  if (flags != 1 || pinned_count == 65536) return INVALID;
  stub_log("register %zu\n", size);
  pinned[pinned_count].at = at;
  pinned[pinned_count++].size = size;
  return OK;
}

static int is_pinned(const unsigned char *at, size_t size) {
  for (int index = 0; index < pinned_count; index++)
    if (at >= pinned[index].at && at + size <= pinned[index].at + pinned[index].size) return 1;
  return 0;
}

static int enqueue(struct gpu *stream, void *to, const void *from, size_t size, const void *host) {
  if (current != stream) return INVALID_CONTEXT;
  if (!is_pinned(host, size)) return INVALID;
  struct copy *copy = malloc(sizeof *copy);
  *copy = (struct copy){to, from, size, NULL};
  pthread_mutex_lock(&storage_lock);
  struct copy **last = &stream->copies;
  while (*last) last = &(*last)->next;
  *last = copy;
  pthread_mutex_unlock(&storage_lock);
  return OK;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t size, void *stream) {
  stub_log("copy out %zu\n", size);
  RULED(0);
  return enqueue(stream, to, (void *)(uintptr_t)from, size, to);
}

int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t size, void *stream) {
  stub_log("copy in %zu\n", size);
  RULED(0);
  return enqueue(stream, (void *)(uintptr_t)to, from, size, from);
}

static void run_copies(struct gpu *stream) {
  pthread_mutex_lock(&storage_lock);
  for (struct copy *copy = stream->copies, *next; copy; copy = next) {
    next = copy->next;
    memcpy(copy->to, copy->from, copy->size);
    free(copy);
  }
  stream->copies = NULL;
  pthread_mutex_unlock(&storage_lock);
}

/* Copies happen after they have been asked for once. */
int cuStreamQuery(struct gpu *stream) {
  RULED(0);
  if (current != stream) return INVALID_CONTEXT;
  if (!stream->copies) return OK;
  run_copies(stream);
  return NOT_READY;
}

static int begin_storage(struct stub_process *process, const unsigned char *out, int state) {
  if (CUDA_VERSION < 13040) return INVALID;
  struct operation *operation = calloc(1, sizeof *operation);
  operation->pid = process->pid;
  /* In another order each time: whoever copies goes by the stream. */
  for (int index = 0; index < MAX_STUB_GPUS; index++) {
    int gpu = state == RESTORING ? MAX_STUB_GPUS - 1 - index : index;
    size_t size = contents_size(process->pid, gpu);
    if (size == 0) continue;
    if (!gpus[gpu].is_retained) return INVALID_CONTEXT;
    unsigned char *bytes = malloc(size);
    if (state == RESTORING) spoil(bytes, size);
    else {
      unsigned char *vram = contents("vram", process->pid, gpu, size);
      memcpy(bytes, vram, size);
      munmap(vram, size);
    }
    operation->gpus[operation->storage.count] = gpu;
    operation->devices[operation->storage.count++] = (struct per_device){(unsigned long long)(uintptr_t)bytes, size, &gpus[gpu]};
  }
  operation->storage.handle = operation;
  operation->storage.devices = operation->devices;
  struct storage **result, *storage = &operation->storage;
  memcpy(&result, out, sizeof result);
  *result = storage;
  process->state = state;
  stub_store(process);
  return OK;
}

int cuCheckpointOperationComplete(struct operation *operation) {
  int pid = operation->pid;
  struct stub_process process;
  stub_log("complete %d\n", pid);
  RULED(pid);
  if (stub_process_at(pid, &process) != 0 || (process.state != CHECKPOINTING && process.state != RESTORING)) return ILLEGAL_STATE;
  for (unsigned index = 0; index < operation->storage.count; index++) {
    struct per_device *device = &operation->devices[index];
    run_copies(device->stream);
    unsigned char *vram = contents("vram", pid, operation->gpus[index], device->size);
    if (process.state == RESTORING) memcpy(vram, (void *)(uintptr_t)device->address, device->size);
    else spoil(vram, device->size);
    munmap(vram, device->size);
    free((void *)(uintptr_t)device->address);
  }
  process.state = process.state == RESTORING ? LOCKED : CHECKPOINTED;
  stub_store(&process);
  free(operation);
  return OK;
}

int cuDeviceGet(int *device, int ordinal);
int cuCtxSetCurrent(void *context);

int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status) {
  static const struct { const char *name; void *function; } known[] = {
    {"cuCheckpointOperationComplete", (void *)cuCheckpointOperationComplete}, {"cuDeviceGetCount", (void *)cuDeviceGetCount},
    {"cuDeviceGet", (void *)cuDeviceGet}, {"cuDeviceGetUuid", (void *)cuDeviceGetUuid_v2},
    {"cuDevicePrimaryCtxRetain", (void *)cuDevicePrimaryCtxRetain}, {"cuCtxSetCurrent", (void *)cuCtxSetCurrent},
    {"cuStreamGetDevice", (void *)cuStreamGetDevice}, {"cuStreamQuery", (void *)cuStreamQuery},
    {"cuMemHostRegister", (void *)cuMemHostRegister_v2}, {"cuMemcpyDtoHAsync", (void *)cuMemcpyDtoHAsync_v2},
    {"cuMemcpyHtoDAsync", (void *)cuMemcpyHtoDAsync_v2},
  };
  *function = NULL;
  if (version > CUDA_VERSION || flags != 0) return INVALID;
  *status = 1;
  for (size_t index = 0; index < sizeof known / sizeof *known; index++)
    if (strcmp(known[index].name, name) == 0) *function = known[index].function, *status = 0;
  return *function ? OK : 500;
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
  return ordinal < stub_gpu_count() ? OK : INVALID;
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

/* At the end of the file of contents, which the driver can copy. */
static void *allocated(int gpu, size_t bytes) {
  char path[4096];
  struct stat facts;
  snprintf(path, sizeof path, "%s/vram-%d-%d", STUB_STATE, (int)getpid(), gpu);
  int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  size_t size = (bytes + 4095) / 4096 * 4096;
  if (file < 0 || fstat(file, &facts) != 0 || ftruncate(file, facts.st_size + (off_t)size) != 0) return NULL;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, facts.st_size);
  close(file);
  return memory == MAP_FAILED ? NULL : memory;
}

int cuMemAlloc_v2(unsigned long long *pointer, size_t bytes) {
  struct stub_process process;
  own(&process);
  long mib = (long)((bytes + MIB - 1) / MIB);
  if (mib > stub_free_mib(own_gpu())) return OUT_OF_MEMORY;
  void *memory = allocated(own_gpu(), bytes);
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

/* A primary context belongs to the thread; other contexts are all one. */
int cuCtxSetCurrent(void *context) {
#ifndef OLD_CUDA
  current = NULL;
  for (int gpu = 0; gpu < MAX_STUB_GPUS; gpu++)
    if (context == &gpus[gpu] && gpus[gpu].is_retained) return current = &gpus[gpu], OK;
#endif
  return context == &is_initialized ? OK : INVALID;
}

/* As driver 580.159.04: it does not wait for a process whose memory is elsewhere to return. */
int cuCtxSynchronize(void) {
  struct stub_process process;
  if (stub_process_at((int)getpid(), &process) == 0 && process.state == 2) raise(SIGSEGV);
  return OK;
}

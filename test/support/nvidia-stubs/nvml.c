/* A stand-in for libnvidia-ml. Compiled with OLD_NVML it has the first version of each function only. */
#include "stub-state.h"

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, SHORT = 7, VERSION_MISMATCH = 25 };

struct device { int index; };
static struct device devices[MAX_STUB_GPUS];

#define RULED(pid) do { int code = stub_rule(__func__, pid); if (code >= 0) return code; } while (0)

int nvmlInit_v2(void) {
  stub_log("%s\n", __func__);
  RULED(0);
  for (int gpu = 0; gpu < MAX_STUB_GPUS; gpu++) devices[gpu].index = gpu;
  return OK;
}

int nvmlSystemGetDriverVersion(char *version, unsigned length) {
  RULED(0);
  return stub_read("driver", version, length) == 0 ? OK : NOT_FOUND;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
  RULED(0);
  *count = (unsigned)stub_gpu_count();
  return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **device) {
  RULED((int)index);
  if ((int)index >= stub_gpu_count()) return INVALID;
  *device = &devices[index];
  return OK;
}

static int text(const char *from, char *to, unsigned length) {
  if (strlen(from) >= length) return SHORT;
  strcpy(to, from);
  return OK;
}

int nvmlDeviceGetUUID(struct device *device, char *uuid, unsigned length) {
  RULED(device->index);
  struct stub_gpu gpu;
  return stub_gpu_at(device->index, &gpu) == 0 ? text(gpu.uuid, uuid, length) : INVALID;
}

int nvmlDeviceGetName(struct device *device, char *name, unsigned length) {
  RULED(device->index);
  struct stub_gpu gpu;
  return stub_gpu_at(device->index, &gpu) == 0 ? text(gpu.name, name, length) : INVALID;
}

struct memory { unsigned long long total, free, used; };

int nvmlDeviceGetMemoryInfo(struct device *device, struct memory *memory) {
  RULED(device->index);
  struct stub_gpu gpu;
  if (stub_gpu_at(device->index, &gpu) != 0) return INVALID;
  memory->total = (unsigned long long)gpu.total * MIB;
  memory->free = (unsigned long long)stub_free_mib(device->index) * MIB;
  memory->used = memory->total - memory->free;
  return OK;
}

struct utilization { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(struct device *device, struct utilization *rates) {
  RULED(device->index);
  struct stub_gpu gpu;
  if (stub_gpu_at(device->index, &gpu) != 0) return INVALID;
  if (gpu.mig) return NOT_SUPPORTED;
  rates->gpu = (unsigned)gpu.utilization;
  rates->memory = 0;
  return OK;
}

struct process_v1 { unsigned pid; unsigned long long used; };
struct process_v2 { unsigned pid; unsigned long long used; unsigned gpu_instance, compute_instance; };

static int listed(int index, char kind, struct process_v2 *entries, unsigned room, unsigned *count) {
  struct stub_process found[1024];
  int all = stub_processes(found, 1024);
  *count = 0;
  for (int entry = 0; entry < all; entry++) {
    if (found[entry].mib[index] == 0 || found[entry].kind != kind) continue;
    if (*count < room) {
      entries[*count].pid = (unsigned)found[entry].pid;
      entries[*count].used = found[entry].mib[index] < 0 ? ~0ULL : (unsigned long long)found[entry].mib[index] * MIB;
      entries[*count].gpu_instance = entries[*count].compute_instance = ~0U;
    }
    (*count)++;
  }
  return *count > room ? SHORT : OK;
}

#ifdef OLD_NVML
int nvmlDeviceGetComputeRunningProcesses(struct device *device, unsigned *count, struct process_v1 *entries) {
  struct process_v2 found[1024];
  RULED(device->index);
  unsigned room = *count;
  int code = listed(device->index, 'c', found, room < 1024 ? room : 1024, count);
  for (unsigned entry = 0; code == OK && entry < *count; entry++) {
    entries[entry].pid = found[entry].pid;
    entries[entry].used = found[entry].used;
  }
  return code;
}
#else
struct memory_v2 { unsigned version; unsigned long long total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory_v2 *memory) {
  RULED(device->index);
  if (memory->version != (sizeof *memory | 2 << 24)) return VERSION_MISMATCH;
  struct stub_gpu gpu;
  if (stub_gpu_at(device->index, &gpu) != 0) return INVALID;
  memory->total = (unsigned long long)gpu.total * MIB;
  memory->reserved = (unsigned long long)gpu.reserved * MIB;
  memory->free = (unsigned long long)stub_free_mib(device->index) * MIB;
  memory->used = memory->total - memory->reserved - memory->free;
  return OK;
}

int nvmlDeviceGetMigMode(struct device *device, unsigned *current, unsigned *pending) {
  RULED(device->index);
  struct stub_gpu gpu;
  if (stub_gpu_at(device->index, &gpu) != 0) return INVALID;
  if (gpu.mig < 0) return NOT_SUPPORTED;
  *current = *pending = (unsigned)gpu.mig;
  return OK;
}

#define PROCESS_LIST(function, kind) \
  int function(struct device *device, unsigned *count, struct process_v2 *entries) { \
    RULED(device->index); \
    return listed(device->index, kind, entries, *count, count); \
  }
PROCESS_LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'c')
PROCESS_LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g')
PROCESS_LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm')

struct sample { unsigned pid; unsigned long long time; unsigned sm, memory, encoder, decoder; };

/* The samples are always newer than what has been seen: a test says who is busy, not when. */
int nvmlDeviceGetProcessUtilization(struct device *device, struct sample *samples, unsigned *count, unsigned long long seen) {
  struct stub_process found[1024];
  RULED(device->index);
  int all = stub_processes(found, 1024);
  unsigned room = *count;
  *count = 0;
  for (int entry = 0; entry < all; entry++) {
    if (found[entry].mib[device->index] == 0 || found[entry].utilization == 0) continue;
    if (*count == room) return SHORT;
    samples[(*count)++] = (struct sample){(unsigned)found[entry].pid, seen + 1, (unsigned)found[entry].utilization, 0, 0, 0};
  }
  return *count == 0 ? NOT_FOUND : OK;
}
#endif

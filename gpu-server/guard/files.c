/*
 * Serves the files of one task: below a folder, as the user of the task. The kernel keeps every path below the
 * folder while it resolves it (openat2, RESOLVE_BENEATH), so that a task that exchanges folders and links at
 * the same time cannot lead this process elsewhere. work-helper.ts speaks its protocol: frames of a header and
 * a payload, in the byte order of the machine.
 */
#include "guard.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FOLDER 3
#define MAX_PAYLOAD (512u << 10)
#define MAX_DATA (256u << 10)
#define MAX_LIST_BYTES (96u << 10)
#define MAX_DEPTH 64
#define MAX_PATH 4096
#define MAX_NAMES 200000
/* A rename at the same time makes the kernel give up a resolution; a task cannot do that for ever. */
#define RESOLVE_TRIES 64

enum { OP_READ = 1, OP_LIST, OP_FOLDER, OP_WRITE, OP_LINK, OP_USAGE };
enum { WRITE_NEW = 1, WRITE_EXECUTABLE = 2 };

struct request { uint32_t size, op; uint64_t a, b; };
struct reply { uint32_t size; int32_t error; uint64_t a, b, c; };

static char payload[MAX_PAYLOAD + 1], data[MAX_DATA];

/* ---- frames ---- */

static bool read_all(void *to, size_t size) {
  for (char *at = to; size > 0;) {
    ssize_t n = read(0, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static bool write_all(const void *from, size_t size) {
  for (const char *at = from; size > 0;) {
    ssize_t n = write(1, at, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    at += n;
    size -= (size_t)n;
  }
  return true;
}

static bool answer(struct reply reply, const void *content) {
  return write_all(&reply, sizeof reply) && write_all(content, reply.size);
}

/* ---- paths ---- */

static int open_below(const char *path, int flags, mode_t mode, uint64_t resolve) {
  int more = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  struct open_how how = {
      .flags = (uint64_t)(flags | more),
      .mode = mode,
      .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV | resolve,
  };
  for (int tries = 0;; tries++) {
    long file = syscall(SYS_openat2, FOLDER, path[0] == 0 ? "." : path, &how, sizeof how);
    if (file >= 0 || errno != EAGAIN || tries >= RESOLVE_TRIES) return (int)file;
  }
}

static int64_t modified_ms(const struct stat *about) {
  return (int64_t)about->st_mtim.tv_sec * 1000 + about->st_mtim.tv_nsec / 1000000;
}

static int fail_with(int error, int file) {
  if (file >= 0) close(file);
  return error;
}

/* ---- reading ---- */

/* Opening waits for no FIFO, and only a regular file is read. */
static int read_file(const char *path, uint64_t offset, uint64_t most, struct reply *reply) {
  struct stat about;
  int file = open_below(path, O_RDONLY, 0, 0);
  if (file < 0) return errno;
  if (fstat(file, &about) != 0) return fail_with(errno, file);
  if (S_ISDIR(about.st_mode)) return fail_with(EISDIR, file);
  if (!S_ISREG(about.st_mode) || offset > INT64_MAX) return fail_with(EINVAL, file);
  ssize_t n = pread(file, data, most < MAX_DATA ? most : MAX_DATA, (off_t)offset);
  if (n < 0) return fail_with(errno, file);
  reply->size = (uint32_t)n;
  reply->a = (uint64_t)about.st_size;
  reply->b = (uint64_t)modified_ms(&about);
  reply->c = (uint64_t)about.st_ino;
  close(file);
  return 0;
}

/* ---- lists ---- */

struct list { char after[MAX_PATH + 1]; size_t size, items, most; bool is_full; int error; };

/* The order of a walk: a folder before its content, and names by their bytes. */
static int compare(const char *a, const char *b) {
  while (*a != 0 && *a == *b) a++, b++;
  if (*a == 0 || *b == 0) return (*a != 0) - (*b != 0);
  unsigned char left = *a == '/' ? 0 : (unsigned char)*a, right = *b == '/' ? 0 : (unsigned char)*b;
  return (left > right) - (left < right);
}

static bool contains(const char *folder, const char *path) {
  size_t size = strlen(folder);
  return strncmp(folder, path, size) == 0 && path[size] == '/';
}

static void put(struct list *list, const char *path, const struct stat *about) {
  size_t length = strlen(path), size = 20 + length;
  if (list->items >= list->most || list->size + size > MAX_LIST_BYTES) {
    list->is_full = true;
    return;
  }
  mode_t mode = about->st_mode;
  uint16_t kind = S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o', length16 = (uint16_t)length;
  uint64_t bytes = S_ISREG(mode) ? (uint64_t)about->st_size : 0;
  int64_t modified = modified_ms(about);
  char *at = data + list->size;
  memcpy(at, &kind, 2);
  memcpy(at + 2, &length16, 2);
  memcpy(at + 4, &bytes, 8);
  memcpy(at + 12, &modified, 8);
  memcpy(at + 20, path, length);
  list->size += size;
  list->items++;
}

static int by_bytes(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Returns the names in a folder, sorted, or NULL. Closes the file. */
static char **names_in(int folder, size_t *count) {
  DIR *stream = fdopendir(folder);
  if (stream == NULL) return close(folder), NULL;
  size_t room = 64;
  char **names = malloc(room * sizeof *names);
  *count = 0;
  for (struct dirent *entry; names != NULL && *count < MAX_NAMES && (entry = readdir(stream)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (*count == room) {
      char **more = realloc(names, (room *= 2) * sizeof *names);
      if (more == NULL) break;
      names = more;
    }
    if ((names[*count] = strdup(entry->d_name)) == NULL) break;
    ++*count;
  }
  closedir(stream);
  if (names != NULL) qsort(names, *count, sizeof *names, by_bytes);
  return names;
}

/* Every step goes through an open folder and follows no link. What cannot be opened has no content here. */
static void walk(struct list *list, int folder, char *path, size_t length, int depth) {
  size_t count = 0;
  int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char **names = copy < 0 ? NULL : names_in(copy, &count);
  for (size_t i = 0; names != NULL && i < count; i++) {
    struct stat about;
    size_t size = strlen(names[i]), start = length == 0 ? 0 : length + 1;
    if (!list->is_full && start + size < MAX_PATH && fstatat(folder, names[i], &about, AT_SYMLINK_NOFOLLOW) == 0) {
      if (length > 0) path[length] = '/';
      memcpy(path + start, names[i], size + 1);
      bool is_new = compare(path, list->after) > 0;
      if (is_new) put(list, path, &about);
      if (S_ISDIR(about.st_mode) && depth < MAX_DEPTH && (is_new || contains(path, list->after) || strcmp(path, list->after) == 0)) {
        int inner = openat(folder, names[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner >= 0) walk(list, inner, path, start + size, depth + 1);
        if (inner >= 0) close(inner);
      }
      path[length] = 0;
    }
    free(names[i]);
  }
  free(names);
}

/* Payload: the folder or file, NUL, the last path of the answer before. */
static int list_files(char *path, size_t size, uint64_t most, struct reply *reply) {
  static struct list list;
  static char at[MAX_PATH + 1];
  struct stat about;
  size_t length = strlen(path);
  if (length + 1 > size || length > MAX_PATH || strlen(path + length + 1) > MAX_PATH) return EINVAL;
  memset(&list, 0, sizeof list);
  strcpy(list.after, path + length + 1);
  list.most = most;
  strcpy(at, path);
  int file = open_below(path, O_RDONLY, 0, 0);
  if (file < 0) return errno;
  if (fstat(file, &about) != 0) return fail_with(errno, file);
  if (S_ISDIR(about.st_mode)) walk(&list, file, at, length, 0);
  else if (list.after[0] == 0) put(&list, path, &about);
  close(file);
  reply->size = (uint32_t)list.size;
  reply->a = list.is_full ? 0 : 1;
  return 0;
}

/* ---- disk usage ---- */

/* Adds up what a folder takes, and closes it. */
static void measure(int folder, int depth, uint64_t *bytes) {
  DIR *stream = fdopendir(folder);
  if (stream == NULL) {
    close(folder);
    return;
  }
  for (struct dirent *entry; (entry = readdir(stream)) != NULL;) {
    struct stat about;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (fstatat(dirfd(stream), entry->d_name, &about, AT_SYMLINK_NOFOLLOW) != 0) continue;
    *bytes += (uint64_t)about.st_blocks * 512;
    if (!S_ISDIR(about.st_mode) || depth >= MAX_DEPTH) continue;
    int inner = openat(dirfd(stream), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner >= 0) measure(inner, depth + 1, bytes);
  }
  closedir(stream);
}

static int measure_all(struct reply *reply) {
  int file = open_below("", O_RDONLY | O_DIRECTORY, 0, 0);
  if (file < 0) return errno;
  measure(file, 0, &reply->a);
  return 0;
}

/* ---- writing: before the task runs ---- */

/* The second of two texts that a NUL separates. */
static char *second_of(char *path, size_t size) {
  size_t length = strlen(path);
  return length + 1 > size ? NULL : path + length + 1;
}

/* Opens the folder that contains the path, and returns its last name; follows no link at all. */
static int open_parent(char *path, char **name) {
  char *slash = strrchr(path, '/');
  *name = slash == NULL ? path : slash + 1;
  if ((*name)[0] == 0 || strcmp(*name, ".") == 0 || strcmp(*name, "..") == 0) return errno = EINVAL, -1;
  if (slash != NULL) *slash = 0;
  int folder = open_below(slash == NULL ? "" : path, O_PATH | O_DIRECTORY, 0, RESOLVE_NO_SYMLINKS);
  if (slash != NULL) *slash = '/';
  return folder;
}

static int make_folder(char *path) {
  char *name;
  int parent = open_parent(path, &name);
  if (parent < 0) return errno;
  return fail_with(mkdirat(parent, name, 0755) == 0 ? 0 : errno, parent);
}

static int make_link(char *path, size_t size) {
  char *name, *target = second_of(path, size);
  if (target == NULL) return EINVAL;
  int parent = open_parent(path, &name);
  if (parent < 0) return errno;
  return fail_with(symlinkat(target, parent, name) == 0 ? 0 : errno, parent);
}

static int write_file(char *path, size_t size, uint64_t offset, uint64_t how) {
  char *bytes = second_of(path, size);
  if (bytes == NULL || offset > INT64_MAX) return EINVAL;
  size_t left = size - (size_t)(bytes - path);
  int flags = O_WRONLY | O_NOFOLLOW | (how & WRITE_NEW ? O_CREAT | O_EXCL : 0);
  int file = open_below(path, flags, how & WRITE_NEW ? (how & WRITE_EXECUTABLE ? 0755 : 0644) : 0, RESOLVE_NO_SYMLINKS);
  if (file < 0) return errno;
  while (left > 0) {
    ssize_t n = pwrite(file, bytes, left, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_with(errno, file);
    bytes += n;
    offset += (uint64_t)n;
    left -= (size_t)n;
  }
  return fail_with(0, file);
}

/* ---- the process ---- */

static int serve(const struct request *request, struct reply *reply) {
  switch (request->op) {
    case OP_READ: return read_file(payload, request->a, request->b, reply);
    case OP_LIST: return list_files(payload, request->size, request->a, reply);
    case OP_FOLDER: return make_folder(payload);
    case OP_WRITE: return write_file(payload, request->size, request->a, request->b);
    case OP_LINK: return make_link(payload, request->size);
    case OP_USAGE: return measure_all(reply);
    default: return ENOSYS;
  }
}

/* No process of the same user may look into this one: the kernel sees a program that changed its user. */
static bool become(long uid, long gid) {
  gid_t group = (gid_t)gid;
  if (uid >= 0) {
    if (geteuid() == 0 && setgroups(1, &group) != 0) return false;
    if (setresgid(group, group, group) != 0 || setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid) != 0) return false;
  }
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

int serve_files(const char *uid, const char *gid) {
  struct request request;
  syscall(SYS_close_range, FOLDER + 1, ~0U, 0);
  umask(0);
  if (!become(atol(uid), atol(gid))) return 1;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (read_all(&request, sizeof request)) {
    struct reply reply = {0};
    if (request.size > MAX_PAYLOAD || !read_all(payload, request.size)) return 1;
    payload[request.size] = 0;
    reply.error = serve(&request, &reply);
    if (reply.error != 0) reply.size = 0;
    if (!answer(reply, data)) return 1;
  }
  return 0;
}

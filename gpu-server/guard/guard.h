/* Declarations that the files of the guard of one task share. Times are CLOCK_BOOTTIME milliseconds. See
 * docs/decisions/0016-guard.md. */
#ifndef HEADROOM_GUARD_H
#define HEADROOM_GUARD_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

/* ---- open files in messages: pass.c ---- */

#define MAX_PASSED 8
struct passed { int list[MAX_PASSED]; size_t count; };

bool pass_files(int link, const void *message, size_t size, const int *files, size_t count);
/* Returns the size of the message as recvmsg does. */
ssize_t receive_files(int link, void *message, size_t size, struct passed *files, int flags);
void close_files(struct passed *files);

/* ---- the caller of a server: peer.c ---- */

/* Returns the exit code. */
int print_peer(void);

/* ---- requests that wait for tasks: sockets.c ---- */

/* Runs until its input ends; returns the exit code. */
int watch_sockets(void);

/* ---- a task that runs while its VRAM is away: proxy.c ---- */

/* Runs until the task or a server ends it; returns the exit code. */
int run_proxy(int count, char **argv);

/* ---- files of a task: files.c ---- */

/* Reads and writes below the folder that is descriptor 3, as this user (-1: the caller's own), until its
 * input ends. Returns the exit code. */
int serve_files(const char *uid, const char *gid);

/* ---- what to run: spec.c ---- */

struct spec {
  char *task, *attempt;
  long uid, gid;        /* -1: the guard's own */
  long own_group;       /* a supplementary group of this attempt only, or -1 */
  bool is_leased;
  bool is_isolated;     /* in its own PID namespace, where possible */
  bool is_contained;    /* in a container: its init is the keeper, which connects to the guard */
  uint64_t max_output;  /* bytes, both streams together */
  char *folder_cgroup;  /* a cgroup v2 folder made for this task, or "" */
  bool is_memory_limited;
  char **limit_cgroups; /* cgroups whose limits apply to this task only; its command must be in all of them */
  char *working_directory;
  char **argv, **env;
  void *memory;
  size_t size, memory_size; /* bytes that were read, and that are mapped */
};

/* Reads standard input to its end; on an error answers why and exits. */
void spec_read(struct spec *spec);
void spec_forget(struct spec *spec);
/* Answers the launch with `error <text>` and exits; nothing was started yet. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* `task`: the command is invalid. `container`: its init did not start. `lease`: the run lease is over. `refused STEP ERRNO`: the error before the
 * command was executed. */
_Noreturn void refuse_as(const char *kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- time and the lease: lease.c ---- */

struct lease { int64_t until, length; };

int64_t now_boot(void);
/* Grows when the host was suspended. */
int64_t suspended_for(void);
bool lease_open(const char *path);
/* An unreadable lease counts as over. */
struct lease lease_read(void);

/* ---- the task's processes, as this PID namespace sees them: processes.c ---- */

struct process {
  pid_t pid;
  bool is_still; /* every thread is stopped or dead */
  bool is_dead;
  bool is_waiting; /* some thread waits in the kernel and cannot handle signals */
};
struct processes { struct process *list; size_t count, room; };

/* Where to find the processes of a task: all descendants of `root` and the members of its cgroup, except
 * `root` and `spared`. */
struct scope {
  pid_t root, spared;
  const char *cgroup; /* of this task only, made by its server, or "" */
  /* The cgroup in which an engine runs the container, or "". Another process may be in it too: a member counts
   * if it is in this PID namespace. */
  const char *container_cgroup;
  uint64_t pid_namespace;
};

bool can_list_children(void);
void processes_find(struct processes *found, const struct scope *scope);
/* Sends SIGSTOP until all of them are stopped. Returns 0, or the pid of a process that did not stop within
 * the limit. */
pid_t processes_stop(const struct scope *scope);
void processes_signal(const struct scope *scope, int signal);
void cgroup_write(const char *cgroup, const char *file, const char *text);
/* Returns the number of the PID namespace of a process, or 0. */
uint64_t pid_namespace_of(pid_t pid);
bool is_init_of_namespace(pid_t pid);
/* The folder whose file cgroup.procs lists the process, as its engine made it; "" if it is not found. */
void find_container_cgroup(pid_t pid, char *path, size_t size);
uint64_t start_time(pid_t pid);
/* True if gone, or a zombie. */
bool is_process_dead(pid_t pid);

/* ---- limits of the task: limits.c ---- */

bool limits_join(char **folders, pid_t pid);
/* The memory of this process is limited for this task only: opens the counts of its cgroup. */
void memory_watch(pid_t pid);
/* The kernel has killed a process of the task, because of its limit of memory. */
bool memory_has_killed(void);

/* ---- the process that launches and reaps: keeper.c ---- */

/* `pid_file`: a pidfd of a keeper that is no child of its guard, or -1. */
struct keeper { pid_t pid, command; int link; bool is_isolated; int go, failure, pid_file; };

/* From the keeper: P, N, X. From the guard: a stop has begun (S), kill everything (K), X was read (R). About the added
 * command that has the number in `status`: from the guard A, with its files, and D; from the keeper the answers a and n
 * to A. */
enum { LINK_READY = 'P', LINK_NO_NAMESPACE = 'N', LINK_EXITED = 'X', LINK_STOPPING = 'S', LINK_KILL = 'K', LINK_READ = 'R',
  LINK_ADD = 'A', LINK_ADDED = 'a', LINK_NOT_ADDED = 'n', LINK_DROP = 'D' };
struct link_message { char kind; int status; };
struct failure { int step, error; };

/* What a keeper gets to launch its command. */
struct launch {
  const struct spec *spec;
  const int *output;
  int link, go, failure, oom_score;
  mode_t umask;
  bool is_isolated, is_init; /* in its own PID namespace; as the init of a container */
};

/* Its command waits for keeper_go. Returns an error text, or NULL. */
const char *keeper_start(struct keeper *keeper, const struct spec *spec, const int output[2], mode_t umask, int oom_score);
_Noreturn void keeper_run(const struct launch *launch);
/* Lets the command run; returns false and the reason if it could not. */
bool keeper_go(struct keeper *keeper, struct failure *failure);
/* Lets a command end that waits for keeper_go. */
void keeper_call_off(struct keeper *keeper);
void describe_failure(char *text, size_t size, const struct failure *failure, const struct spec *spec);

/* What every process of the task gets and loses before its program runs: signals, user, privileges, folder, environment.
 * Ends the process if its parent has gone; returns false and the reason if it fails. */
bool keeper_confine(const struct launch *launch, pid_t parent, struct failure *failure);

bool receive_ready(int link, struct link_message *message, pid_t *from);

/* ---- a keeper that is the init of a container: container.c ---- */

/* Waits for the init of the container, which the server starts now, and passes it what to run. Returns an
 * error text, or NULL. */
const char *container_start(struct keeper *keeper, const struct spec *spec, const int output[2]);
/* Runs as the init of a container: connects to the guard. */
_Noreturn void container_init(void);

/* ---- commands that run besides its own: added.c ---- */

#define MAX_ADDED 4
#define ADDED_TEXT_BYTES 256

/* The files that come with LINK_ADD: what to run, a socket to the client's process, its three streams, and a pipe: the
 * command waits for one byte of it. The client passes all but the last to the guard. */
enum { ADDED_REQUEST, ADDED_LINK, ADDED_IN, ADDED_OUT, ADDED_ERR, ADDED_GO, ADDED_FILES };

struct added_request { bool has_terminal; struct winsize size; char *terminal, **argv; };
/* As spec_read. */
void added_request_read(struct added_request *request);

bool added_start(const struct launch *launch, int number, const struct passed *files);
/* Its client has gone. */
void added_drop(int number);
void added_reaped(pid_t pid);
/* Returns true while something of a dropped one is left. */
bool added_kill_dropped(void);

/* ---- the client's side: channel.c, exec.c, forward.c ---- */

/* Where a channel leads: what the client sends goes to `to`, what is read from `from` and `errors` goes to the client. */
struct channel { int to, from, errors, link, guard; bool has_terminal; };

/* Reads the first frame of the client: what to do. Exits if there is none. */
size_t channel_request(char *text, size_t room);
/* Tells the client why there is no channel, and exits. */
_Noreturn void channel_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Tells the client that the channel is open, and passes bytes until it ends. */
_Noreturn void channel_run(struct channel *channel);
int exec_in_task(const char *folder);
int forward_port(const char *port, const char *pids);

/* ---- its output: output.c ---- */

/* Starts the threads that write the two pipes to files in the current folder. `done` (an eventfd) is written
 * when they end. */
bool output_start(const int pipes[2], uint64_t max_bytes, int done);
/* No process writes any more: drains the pipes and ends. */
void output_finish(void);
uint64_t output_dropped(void);

/* ---- what is kept on disk: record.c ---- */

/* What the guard did before the command was over; if neither, the command ended by itself. */
struct end {
  bool by_lease; /* the guard killed it, because the run lease was over */
  bool by_order; /* the guard signalled it, on order of its server */
  bool never_ran; /* by order, and the task could not run between SIGTERM and SIGKILL */
  bool by_memory; /* before the command was over, the kernel killed a process because of the limit of memory */
};

bool record_claim(void);
/* Return true once the start or the end is durable. */
bool record_started(const struct spec *spec, const struct keeper *keeper);
bool record_reserve_exit(void);
bool record_exit(int status, const struct end *end);
/* `code 3` or `signal 9`, as in the record. */
void exit_text(char *text, size_t size, int status);

#endif

/* The state of one guard: its task, and the events that it waits for. */
#ifndef HEADROOM_GUARD_STATE_H
#define HEADROOM_GUARD_STATE_H

#include "guard.h"

#include <poll.h>

#define CLIENTS 8
#define LINE_BYTES 64
#define REPLY_BYTES 256
#define CGROUP_BYTES 512

enum { ON_CHILD, ON_KEEPER, ON_LEASE, ON_CLOCK, ON_STOP, ON_LINK, ON_OUTPUT, ON_FOLDER, ON_LISTEN, ON_CLIENT, WAITS = ON_CLIENT + CLIENTS };

struct guard {
  struct keeper keeper;
  char *cgroup;
  char container_cgroup[CGROUP_BYTES];
  uint64_t pid_namespace; /* of the container */
  struct pollfd waits[WAITS];
  /* `added`: the number of its command, or 0; `go`: lets that run, once the keeper has made it. */
  struct { char line[LINE_BYTES]; size_t size; int added, go; } clients[CLIENTS];
  int last_added;
  int64_t clock_gap, gap_ended; /* ms suspended so far; when the latest suspension was noticed */
  bool is_leased, is_suspended, by_lease, is_killed, is_command_over, is_all_gone, is_output_done;
  bool is_stopping, has_run; /* SIGTERM was sent; the task could run since then */
  int64_t drain_until, stop_at;
  struct end end;
  int status;
};

extern struct guard guard;

/* ---- what happens to the task: course.c ---- */

struct scope task_scope(void);
/* Returns 0, or the pid of a process that does not stop. */
pid_t suspend_task(void);
void kill_task(void);
/* The grace is over, or the stop has no grace. */
void end_task(void);
/* Sends SIGTERM to every process, SIGKILL to the rest after `grace` ms. A later call can only shorten the
 * time. */
void stop_task(int64_t grace);
bool tell_keeper(char kind, int status);
/* Reads one message of the keeper. */
void on_link(void);
/* Suspends the task at the end of its lease and kills it after another length. */
void check_lease(void);
void watch_clock(void);
/* Returns why the task may not resume, or NULL. */
const char *why_not_resume(void);

/* ---- the control socket: control.c ---- */

/* `i`: a client, or -1 for all of them. */
void say_status(const char *prefix, int i);
void say_to_all(const char *text);
void hear(int i);
void accept_client(void);
/* The keeper has made the added command with this number, or could not. */
void on_added(int number, bool is_made);

#endif

/* The course of the task under its guard: suspended, stopped with a grace, ended with its lease. */
#include "state.h"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define CLOCK_GAP_MS 1000
#define FAR_AWAY_S INT64_C(8000000000)

/* A keeper in a container is no child of the guard. Its root is the keeper; once that is gone, nothing is left. */
struct scope task_scope(void) {
  bool is_contained = guard.keeper.pid_file >= 0;
  return (struct scope){
    .root = is_contained ? guard.keeper.pid : getpid(),
    .spared = guard.keeper.pid,
    .cgroup = guard.cgroup,
    .container_cgroup = is_contained ? guard.container_cgroup : "",
    .pid_namespace = guard.pid_namespace,
  };
}

pid_t suspend_task(void) {
  guard.is_suspended = true;
  struct scope scope = task_scope();
  return processes_stop(&scope);
}

/* A keeper that is gone needs no message. */
bool tell_keeper(char kind, int status) {
  struct link_message message = {kind, status};
  if (guard.waits[ON_LINK].fd < 0) return false;
  return send(guard.waits[ON_LINK].fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof message;
}

void kill_task(void) {
  guard.is_killed = true;
  tell_keeper(LINK_KILL, 0);
  struct scope scope = task_scope();
  processes_signal(&scope, SIGKILL);
}

static void arm_timer(int timer, int64_t at) {
  struct itimerspec when = {.it_value = {at / 1000, at % 1000 * 1000000}};
  timerfd_settime(guard.waits[timer].fd, TFD_TIMER_ABSTIME, &when, NULL);
}

static void arm(int64_t at) { arm_timer(ON_LEASE, at); }

void on_link(void) {
  struct link_message message;
  ssize_t n = read(guard.waits[ON_LINK].fd, &message, sizeof message);
  if (n == sizeof message && message.kind != LINK_EXITED) return on_added(message.status, message.kind == LINK_ADDED);
  if (n == sizeof message) {
    guard.status = message.status;
    guard.is_command_over = true;
    guard.end.by_memory = memory_has_killed();
    if (guard.keeper.pid_file >= 0) tell_keeper(LINK_READ, 0);
    return;
  }
  /* The keeper ended without reading the guard's last message: its own last message follows this error. */
  if (n < 0 && (errno == ECONNRESET || errno == EINTR)) return;
  close(guard.waits[ON_LINK].fd);
  guard.waits[ON_LINK].fd = -1;
}

/* The command has ended by itself: later actions are not the cause. */
static bool is_command_dead(void) {
  struct pollfd link = {guard.waits[ON_LINK].fd, POLLIN, 0};
  if (link.fd >= 0 && poll(&link, 1, 0) > 0) on_link();
  return guard.is_command_over || is_process_dead(guard.keeper.command);
}

void end_task(void) {
  if (guard.is_killed) return;
  if (!is_command_dead()) {
    guard.end.by_order = true;
    guard.end.by_lease = guard.by_lease;
    guard.end.never_ran = guard.is_stopping && !guard.has_run;
  }
  kill_task();
}

void stop_task(int64_t grace) {
  int64_t at = now_boot() + grace;
  if (guard.is_killed) return;
  if (grace == 0) return end_task();
  if (guard.is_stopping) {
    if (at < guard.stop_at) arm_timer(ON_STOP, guard.stop_at = at);
    return;
  }
  if (is_command_dead()) return;
  guard.is_stopping = guard.end.by_order = true;
  guard.has_run = !guard.is_suspended;
  arm_timer(ON_STOP, guard.stop_at = at);
  tell_keeper(LINK_STOPPING, 0);
  struct scope scope = task_scope();
  processes_signal(&scope, SIGTERM);
}

/* Called at the deadline, and whenever the deadline starts to count. */
void check_lease(void) {
  struct lease lease = lease_read();
  int64_t now = now_boot();
  bool is_rest_dying = guard.is_command_over && !guard.is_stopping;
  if (!guard.is_leased || is_rest_dying || guard.is_killed) return arm(0);
  if (now < lease.until) return arm(lease.until);
  if (now >= lease.until + lease.length) {
    guard.by_lease = true;
    if (!is_command_dead()) guard.end.by_lease = true;
    kill_task();
    return say_status("event", -1);
  }
  arm(lease.until + lease.length);
  if (guard.is_suspended) return;
  guard.by_lease = true;
  suspend_task();
  say_status("event", -1);
}

void watch_clock(void) {
  struct itimerspec never = {.it_value = {FAR_AWAY_S, 0}};
  uint64_t count;
  while (read(guard.waits[ON_CLOCK].fd, &count, sizeof count) > 0) {}
  timerfd_settime(guard.waits[ON_CLOCK].fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL);
  int64_t gap = suspended_for();
  if (gap - guard.clock_gap >= CLOCK_GAP_MS) {
    guard.clock_gap = gap;
    guard.gap_ended = now_boot();
  }
  check_lease();
}

const char *why_not_resume(void) {
  struct lease lease = lease_read();
  watch_clock();
  if (guard.is_killed) return "it is being killed";
  if (!guard.is_leased) return NULL;
  if (now_boot() >= lease.until) return "the run lease is over";
  if (lease.until - lease.length < guard.gap_ended) return "no run lease since the host was suspended";
  return NULL;
}

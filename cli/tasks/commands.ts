/** `headroom task …` and `headroom why-pending`: arguments and options. */
import { Option, type Command } from 'commander'
import { TASK_STATE_FILTERS } from '../../protocol/units.ts'
import {
  asShortcut,
  calls,
  MAX_ROWS,
  DEFAULT_TASK_ROWS,
  pathOf,
  remote,
  withServer,
  withExamples,
  type SetExit,
} from '../command/command-shape.ts'
import { priority, timeout, whole } from '../command/option-values.ts'
import { TASK_ARGUMENT } from '../command/task-named.ts'
import type { CommandOptions } from '../command/session.ts'

export function addTask(program: Command, setExit: SetExit): void {
  const task = program.command('task').description('GPU tasks')
  addTaskList(task, 'list', setExit)
  addTaskLogs(task, 'logs', setExit)
  addTaskWait(task, 'wait', setExit)
  addTaskActions(task, setExit)
  withExamples(
    remote(
      task.command('show').description('show one task, open or ended').argument('<task>', TASK_ARGUMENT),
    ),
    'headroom task show 0b6f4c1e',
  ).action(calls(setExit, () => import('./tasks.ts'), 'taskShow'))
  addTaskExplain(task, 'explain', setExit)
  withExamples(
    remote(task.command('set').description('change a task; VRAM and groups only while it is pending'))
      .argument('<task>', TASK_ARGUMENT)
      .argument(
        '<field=value...>',
        'noswap=1, priority=P0, vram_mib=8Gi, groups=a,b, labels.team=x (an empty value removes a label)',
      ),
    'headroom task set 0b6f4c1e noswap=1 priority=P0',
    'headroom task set 0b6f4c1e labels.team=vision',
  ).action(calls(setExit, () => import('./tasks.ts'), 'taskSet'))
  addTaskCancel(task, 'cancel', setExit)
  withExamples(
    remote(
      task
        .command('requeue')
        .description(
          'end the current attempts of placed tasks and requeue the tasks; they may start on other nodes',
        )
        .argument('<task...>', TASK_ARGUMENT)
        .option(
          '--confirm-fenced',
          'for unreachable tasks: confirm that their processes are no longer running, instead of waiting ' +
            'for the server',
        ),
    ),
    'headroom task requeue train',
    'headroom task requeue train --confirm-fenced',
  ).action(calls(setExit, () => import('./tasks.ts'), 'taskRequeue'))
  withExamples(
    task.command('schema').description('print the JSON Schema of task files (`run -f`, `apply -f`)'),
    'headroom task schema > task.schema.json',
  ).action(calls(setExit, () => import('../run/task-file.ts'), 'taskSchema'))
}

/** Short names of the task commands that are used most. */
export function addTaskShortcuts(program: Command, setExit: SetExit): void {
  for (const [name, add, of] of [
    ['ps', addTaskList, 'list'],
    ['explain', addTaskExplain, 'explain'],
    ['logs', addTaskLogs, 'logs'],
    ['wait', addTaskWait, 'wait'],
    ['cancel', addTaskCancel, 'cancel'],
    ['stop', addTaskCancel, 'cancel'],
    ['warm', addSwapIn, 'swap-in'],
  ] as const)
    asShortcut(add(program, name, setExit), `headroom task ${of}`)
}

function addTaskExplain(parent: Command, name: string, setExit: SetExit): Command {
  return withExamples(
    remote(
      parent
        .command(name)
        .description('explain why a task waits, or where it is placed')
        .argument('<task>', TASK_ARGUMENT),
    ),
    `${pathOf(parent)} ${name} 0b6f4c1e`,
  ).action(calls(setExit, () => import('./explain.ts'), 'taskExplain'))
}

function addTaskCancel(parent: Command, name: string, setExit: SetExit): Command {
  const path = `${pathOf(parent)} ${name}`
  return withExamples(
    remote(
      parent
        .command(name)
        .description(
          'cancel tasks; the GPU server of a placed task sends SIGTERM, and SIGKILL after its stop grace',
        )
        .argument('<task...>', TASK_ARGUMENT)
        .option('--now', 'send SIGKILL immediately, even to a task that is already stopping'),
    ),
    `${path} train`,
    `headroom task list --state pending --name sweep -o jsonl | jq -r .id | xargs ${path}`,
  ).action(calls(setExit, () => import('./tasks.ts'), 'taskCancel'))
}

function addTaskWait(parent: Command, name: string, setExit: SetExit): Command {
  const path = `${pathOf(parent)} ${name}`
  return withExamples(
    remote(
      parent
        .command(name)
        .description('wait until tasks have ended; exits with the first nonzero exit code of a task')
        .argument('<task...>', TASK_ARGUMENT)
        .option('--timeout <time>', 'stop waiting after this time and exit with code 124', timeout),
    ),
    `${path} train`,
    `${path} train --timeout 30m && echo done`,
  ).action(calls(setExit, () => import('./wait.ts'), 'taskWait'))
}

function addTaskActions(task: Command, setExit: SetExit): void {
  for (const [action, what] of [
    ['hold', 'put pending tasks on hold until they are released'],
    ['release', 'release tasks that are on hold'],
    ['swap-out', 'swap idle tasks out of VRAM; each stays out until it wants the GPU'],
  ] as const)
    addTaskAction(task, action, action, what, setExit)
  addSwapIn(task, 'swap-in', setExit)
}

function addSwapIn(parent: Command, name: string, setExit: SetExit): Command {
  return addTaskAction(parent, name, 'swap-in', 'swap tasks back into VRAM', setExit)
}

function addTaskAction(
  parent: Command,
  name: string,
  action: 'hold' | 'release' | 'swap-out' | 'swap-in',
  what: string,
  setExit: SetExit,
): Command {
  return withExamples(
    remote(parent.command(name).description(what).argument('<task...>', TASK_ARGUMENT)),
    `${pathOf(parent)} ${name} 0b6f4c1e`,
  ).action(async (ids: string[], options: CommandOptions) => {
    const { taskAction: taskByHand } = await import('./tasks.ts')
    setExit(await taskByHand(action, ids, options))
  })
}

function addTaskLogs(parent: Command, name: string, setExit: SetExit): Command {
  const path = `${pathOf(parent)} ${name}`
  return withExamples(
    withServer(parent.command(name).description('print the output of the latest attempt of a task'))
      .argument('<task>', TASK_ARGUMENT)
      .addOption(
        new Option('--stream <stream>', 'print only this stream, and write it to standard output').choices([
          'stdout',
          'stderr',
        ]),
      )
      .option('-f, --follow', 'keep printing new output until the task ends, or Ctrl-C')
      .option('--offset <bytes>', 'start at this byte of the stream', whole(0, 999_999_999_999)),
    `${path} train --follow`,
    `${path} 0b6f4c1e --stream stderr > errors.txt`,
  ).action(calls(setExit, () => import('./logs.ts'), 'taskLogs'))
}

function addTaskList(parent: Command, name: string, setExit: SetExit): Command {
  const path = `${pathOf(parent)} ${name}`
  return withExamples(
    remote(parent.command(name).description('list tasks, newest submission first'))
      .addOption(
        new Option(
          '--state <state>',
          'only tasks in this list (running, pending, completed, all) or in this exact state',
        ).choices(TASK_STATE_FILTERS),
      )
      .option('--priority <p>', 'only tasks of this priority, P0 (highest) to P4', priority)
      .option('--node <node>', 'only tasks placed on this node (name or ID)')
      .option('--group <group>', 'only tasks that may run in this group')
      .addOption(new Option('--owner <owner>', 'only tasks of this owner').conflicts('withoutOwner'))
      .option('--without-owner', 'only tasks submitted without authentication')
      .option('--name <text>', 'only tasks whose name contains this text')
      .option('--limit <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_TASK_ROWS),
    `${path} --state pending -o wide`,
    `${path} --node a100-1 --limit 1000 -o jsonl`,
  ).action(calls(setExit, () => import('./tasks.ts'), 'taskList'))
}

export function addWhyPending(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('why-pending')
        .description('explain why tasks wait: list all waiting tasks, or show one in detail')
        .argument('[task]', TASK_ARGUMENT),
    ).option('--limit <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_TASK_ROWS),
    'headroom why-pending',
    'headroom why-pending 0b6f4c1e',
  ).action(calls(setExit, () => import('./explain.ts'), 'whyPending'))
}

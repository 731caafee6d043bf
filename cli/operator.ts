/** The operator's verbs: their arguments and options. What they do is loaded when one is called. */
import { Option, type Command } from 'commander'
import { remote, withServer, repeatable, withExamples, type SetExit } from './command-shape.ts'
import { notedLinks, priority, timeWithin, whole } from './option-values.ts'
import type { ChangeOptions, HistoryOptions } from './operator/config.ts'
import type { DecisionsOptions } from './operator/decisions.ts'
import type { EventsOptions } from './operator/events.ts'
import type { GroupChangeOptions, GroupCreateOptions } from './operator/groups.ts'
import type { LogsOptions } from './operator/logs.ts'
import type { NodeDrainOptions } from './operator/nodes.ts'
import type { CommandOptions } from './operator/session.ts'
import type { TaskListOptions } from './operator/tasks.ts'
import type { TopOptions } from './operator/top.ts'
import type { WhyPendingOptions } from './operator/why-pending.ts'
import { addRecoveryCommands } from './recovery-commands.ts'
import { addTwinCommands } from './twin-commands.ts'
import type { VerifyEventsOptions } from './verify-events.ts'

/** As in controller/api/schema/task.ts; a test holds them equal. */
export const TASK_STATE_FILTERS = [
  'all',
  'pending',
  'running',
  'completed',
  'assigned',
  'unreachable',
  'failed',
  'cancelled',
  'lost',
] as const

/** As in controller/domain/decision.ts; a test holds them equal. */
export const DECISION_KINDS = [
  'placement',
  'swap_out',
  'swap_in',
  'growth_granted',
  'growth_refused',
] as const

const DRY_RUN = 'say what that would do, and change nothing'
const MAX_ROWS = 1_000_000
const DEFAULT_TASK_ROWS = 50
const DEFAULT_EVENT_ROWS = 20

export function addOperatorCommands(program: Command, setExit: SetExit): void {
  addStatus(program, setExit)
  addTop(program, setExit)
  addNode(program, setExit)
  addTask(program, setExit)
  addGroup(program, setExit)
  addConfig(program, setExit)
  addRecoveryCommands(program, setExit)
  addEvents(program, setExit)
  addDecisions(program, setExit)
  addWhyPending(program, setExit)
  addTwinCommands(program, setExit)
}

function addStatus(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('status')
        .description('the cluster on one page; ends with 1 when the controller is not ready'),
    ),
    'headroom status',
    'headroom status -o json | jq .summary.vram',
  ).action(async (options: CommandOptions) => {
    const { status } = await import('./operator/status.ts')
    setExit(await status(options))
  })
}

function addTop(program: Command, setExit: SetExit): void {
  withExamples(
    remote(program.command('top').description('nodes and tasks as they change; Ctrl-C ends it'))
      .addOption(
        new Option('--interval <time>', 'between two looks')
          .argParser(timeWithin(100, 3_600_000))
          .default(2_000, '2s'),
      )
      .option('--once', 'print once, also on a terminal'),
    'headroom top',
    'headroom top --interval 500ms',
    'headroom top --once -o wide',
  ).action(async (options: TopOptions) => {
    const { top } = await import('./operator/top.ts')
    setExit(await top(options))
  })
}

function addNode(program: Command, setExit: SetExit): void {
  const node = program.command('node').description('GPU nodes; a node is named by its name or its id')
  withExamples(
    remote(node.command('list').description('all nodes, in order of registration')),
    'headroom node list -o wide',
  ).action(async (options: CommandOptions) => {
    const { nodeList } = await import('./operator/nodes.ts')
    setExit(await nodeList(options))
  })
  withExamples(
    remote(node.command('show').description('one node and its GPUs').argument('<node>', 'name or id')),
    'headroom node show a100-1',
  ).action(async (name: string, options: CommandOptions) => {
    const { nodeShow } = await import('./operator/nodes.ts')
    setExit(await nodeShow(name, options))
  })
  withExamples(
    remote(
      node
        .command('set')
        .description(
          'overrides of a node: overcommit (percent) and reserve (VRAM of each GPU); null takes one away',
        ),
    )
      .argument('<node>', 'name or id')
      .argument('<setting=value...>', 'overcommit=50, reserve=2Gi'),
    'headroom node set a100-1 overcommit=50 reserve=4Gi',
    'headroom node set a100-1 overcommit=null  # the global default again',
  ).action(async (name: string, settings: string[], options: CommandOptions) => {
    const { nodeSet } = await import('./operator/nodes.ts')
    setExit(await nodeSet(name, settings, options))
  })
  for (const [verb, what] of [
    ['cordon', 'place no new task on a node; its tasks stay'],
    ['uncordon', 'let a node take tasks again; ends a drain'],
  ] as const) {
    withExamples(
      remote(node.command(verb).description(what).argument('<node>', 'name or id')),
      `headroom node ${verb} a100-1`,
    ).action(async (name: string, options: CommandOptions) => {
      const { nodeCordon } = await import('./operator/nodes.ts')
      setExit(await nodeCordon(name, verb === 'cordon', options))
    })
  }
  withExamples(
    remote(
      node
        .command('drain')
        .description('empty a node: no new task, and those on it end or are moved; uncordon ends it'),
    )
      .argument('<node>', 'name or id')
      .option('--requeue', 'stop tasks with on_node_loss requeue: they wait for another node')
      .option(
        '--after <time>',
        'with --requeue: they may end in their own time for so long',
        timeWithin(0, 604_800_000),
      ),
    'headroom node drain a100-1',
    'headroom node drain a100-1 --requeue --after 1h',
  ).action(async (name: string, options: NodeDrainOptions) => {
    const { nodeDrain } = await import('./operator/nodes.ts')
    setExit(await nodeDrain(name, options))
  })
}

function addTask(program: Command, setExit: SetExit): void {
  const task = program.command('task').description('GPU tasks')
  addTaskList(task, setExit)
  addTaskLogs(task, setExit)
  addTaskActions(task, setExit)
  withExamples(
    remote(task.command('show').description('one task, open or ended').argument('<task>', 'id')),
    'headroom task show 0b6f4c1e-…',
  ).action(async (id: string, options: CommandOptions) => {
    const { taskShow } = await import('./operator/tasks.ts')
    setExit(await taskShow(id, options))
  })
  withExamples(
    remote(
      task.command('explain').description('why a task waits, or where it sits').argument('<task>', 'id'),
    ),
    'headroom task explain 0b6f4c1e-…',
  ).action(async (id: string, options: CommandOptions) => {
    const { taskExplain } = await import('./operator/explain.ts')
    setExit(await taskExplain(id, options))
  })
  withExamples(
    remote(task.command('set').description('change a task; VRAM and groups only while it is pending'))
      .argument('<task>', 'id')
      .argument(
        '<field=value...>',
        'noswap=1, priority=P0, vram_mib=8Gi, groups=a,b, labels.team=x (empty takes a label away)',
      ),
    'headroom task set 0b6f4c1e-… noswap=1 priority=P0',
    'headroom task set 0b6f4c1e-… labels.team=vision',
  ).action(async (id: string, settings: string[], options: CommandOptions) => {
    const { taskSet } = await import('./operator/tasks.ts')
    setExit(await taskSet(id, settings, options))
  })
  withExamples(
    remote(
      task
        .command('cancel')
        .description(
          'cancel tasks; a placed one is stopped by its GPU server: SIGTERM, and SIGKILL after its stop grace',
        )
        .argument('<task...>', 'ids')
        .option('--now', 'SIGKILL at once, also while it is being stopped'),
    ),
    'headroom task cancel 0b6f4c1e-…',
    'headroom task list --state pending --name sweep -o jsonl | jq -r .id | xargs headroom task cancel',
  ).action(async (ids: string[], options: CommandOptions & { readonly now?: boolean }) => {
    const { taskCancel } = await import('./operator/tasks.ts')
    setExit(await taskCancel(ids, options))
  })
}

function addTaskActions(task: Command, setExit: SetExit): void {
  for (const [action, what] of [
    ['hold', 'hold pending tasks back: they are not placed before they are released'],
    ['release', 'let held tasks be placed'],
    ['swap-out', 'swap idle tasks out of VRAM; each stays out until it wants the GPU'],
    ['swap-in', 'let swapped-out tasks return to VRAM'],
  ] as const) {
    withExamples(
      remote(task.command(action).description(what).argument('<task...>', 'ids')),
      `headroom task ${action} 0b6f4c1e-…`,
    ).action(async (ids: string[], options: CommandOptions) => {
      const { taskAction: taskByHand } = await import('./operator/tasks.ts')
      setExit(await taskByHand(action, ids, options))
    })
  }
}

function addTaskLogs(task: Command, setExit: SetExit): void {
  withExamples(
    withServer(task.command('logs').description('what a task wrote, in its latest attempt'))
      .argument('<task>', 'id')
      .addOption(
        new Option('--stream <stream>', 'one of them alone, on stdout').choices(['stdout', 'stderr']),
      )
      .option('-f, --follow', 'go on with what it writes, until it ends or Ctrl-C')
      .option('--offset <bytes>', 'from this byte of that stream on', whole(0, 999_999_999_999)),
    'headroom task logs 0b6f4c1e-… --follow',
    'headroom task logs 0b6f4c1e-… --stream stderr > errors.txt',
  ).action(async (id: string, options: LogsOptions) => {
    const { taskLogs } = await import('./operator/logs.ts')
    setExit(await taskLogs(id, options))
  })
}

function addTaskList(task: Command, setExit: SetExit): void {
  withExamples(
    remote(task.command('list').description('tasks, newest submission first'))
      .addOption(
        new Option('--state <state>', 'a list (running, pending, completed, all) or an exact state').choices(
          TASK_STATE_FILTERS,
        ),
      )
      .option('--priority <p>', 'P0 (highest) to P4', priority)
      .option('--node <node>', 'placed on this node, by name or id')
      .option('--group <group>', 'may run in this group')
      .option('--owner <owner>', 'submitted by')
      .option('--name <text>', 'part of the name')
      .option('--limit <n>', 'at most so many', whole(1, MAX_ROWS), DEFAULT_TASK_ROWS),
    'headroom task list --state pending -o wide',
    'headroom task list --node a100-1 --limit 1000 -o jsonl',
  ).action(async (options: TaskListOptions) => {
    const { taskList } = await import('./operator/tasks.ts')
    setExit(await taskList(options))
  })
}

function addGroup(program: Command, setExit: SetExit): void {
  const group = program
    .command('group')
    .description('named sets of nodes; tasks that target one run nowhere else')
  withExamples(
    remote(group.command('list').description('all groups, by name')),
    'headroom group list',
  ).action(async (options: CommandOptions) => {
    const { groupList } = await import('./operator/groups.ts')
    setExit(await groupList(options))
  })
  withExamples(
    remote(group.command('show').description('one group').argument('<group>', 'its name')),
    'headroom group show training -o yaml',
  ).action(async (id: string, options: CommandOptions) => {
    const { groupShow } = await import('./operator/groups.ts')
    setExit(await groupShow(id, options))
  })
  withExamples(
    remote(
      group
        .command('create')
        .description('create a group; its nodes leave the common pool at once')
        .argument('<group>', 'its name'),
    )
      .option('--description <text>', 'what it is for')
      .option('--node <node>', 'a node in it, by name or id; may be given several times', repeatable, [])
      .option('--dry-run', DRY_RUN),
    'headroom group create training --node a100-1 --node a100-2',
  ).action(async (id: string, options: GroupCreateOptions) => {
    const { groupCreate } = await import('./operator/groups.ts')
    setExit(await groupCreate(id, options))
  })
  withExamples(
    remote(group.command('delete').description('delete a group').argument('<group>', 'its name'))
      .option('--force', 'also when pending tasks target it')
      .option('--dry-run', DRY_RUN),
    'headroom group delete training',
    'headroom group delete training --dry-run',
  ).action(async (id: string, options: GroupChangeOptions & { readonly force?: boolean }) => {
    const { groupDelete } = await import('./operator/groups.ts')
    setExit(await groupDelete(id, options))
  })
  addGroupMembers(group, setExit)
}

function addGroupMembers(group: Command, setExit: SetExit): void {
  const member = (verb: string, what: string): Command =>
    remote(
      group.command(verb).description(what).argument('<group>', 'its name').argument('<node>', 'name or id'),
    ).option('--dry-run', DRY_RUN)
  withExamples(
    member('add-node', 'let a node join a group'),
    'headroom group add-node training a100-3',
  ).action(async (id: string, node: string, options: GroupChangeOptions) => {
    const { groupAddNode } = await import('./operator/groups.ts')
    setExit(await groupAddNode(id, node, options))
  })
  withExamples(
    member('remove-node', 'let a node leave a group'),
    'headroom group remove-node training a100-3',
  ).action(async (id: string, node: string, options: GroupChangeOptions) => {
    const { groupRemoveNode } = await import('./operator/groups.ts')
    setExit(await groupRemoveNode(id, node, options))
  })
}

function addConfig(program: Command, setExit: SetExit): void {
  const config = program.command('config').description('the global settings')
  withExamples(
    remote(
      config
        .command('get')
        .description('all settings, or the value of one')
        .argument('[setting]', 'its name'),
    ),
    'headroom config get',
    'headroom config get default_vram_overcommit_percent',
  ).action(async (setting: string | undefined, options: CommandOptions) => {
    const { configGet } = await import('./operator/config.ts')
    setExit(await configGet(setting, options))
  })
  withExamples(
    remote(
      config
        .command('set')
        .description('change settings; those not named stay')
        .argument('<setting=value...>', 'times may have a unit (5m), sizes too (2Gi)'),
    ).option('--dry-run', DRY_RUN),
    'headroom config set default_vram_overcommit_percent=50 --dry-run',
    'headroom config set default_vram_overcommit_percent=50',
    'headroom config set idle_swap_out_seconds=5m safety_reserve_mib=2Gi max_residency_seconds=null',
  ).action(async (settings: string[], options: ChangeOptions) => {
    const { configSet } = await import('./operator/config.ts')
    setExit(await configSet(settings, options))
  })
  withExamples(
    remote(
      config.command('history').description('who changed the settings, when and how, the newest last'),
    ).option('--last <n>', 'at most so many', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS),
    'headroom config history',
  ).action(async (options: HistoryOptions) => {
    const { configHistory } = await import('./operator/config.ts')
    setExit(await configHistory(options))
  })
  withExamples(
    remote(
      config
        .command('restore')
        .description('make a new revision that equals an earlier one')
        .argument('<revision>', 'its number'),
    ).option('--dry-run', DRY_RUN),
    'headroom config restore 3 --dry-run',
    'headroom config restore 3',
  ).action(async (revision: string, options: ChangeOptions) => {
    const { configRestore } = await import('./operator/config.ts')
    setExit(await configRestore(revision, options))
  })
}

function addDecisions(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('decisions')
        .description(
          'what was decided and from what: placements, swaps, growths; the newest last, or one in detail',
        )
        .argument('[number]', 'of a decision'),
    )
      .option('--task <task>', 'about this task, or it left by it')
      .option('--node <node>', 'only on this node, by name or id')
      .addOption(new Option('--kind <kind>', 'only of this kind').choices(DECISION_KINDS))
      .option('--last <n>', 'at most so many', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <number>', 'from this decision on, without it', whole(0, 999_999_999_999)),
    'headroom decisions --kind swap_out --node a100-1',
    'headroom decisions --task 0b6f4c1e-… --last 5',
    'headroom decisions 4711',
  ).action(async (number: string | undefined, options: DecisionsOptions) => {
    const { decisions } = await import('./operator/decisions.ts')
    setExit(await decisions(number, options))
  })
}

function addEvents(program: Command, setExit: SetExit): void {
  const events = withExamples(
    remote(program.command('events').description('what happened, oldest first'))
      .option('-f, --follow', 'go on with what happens, until Ctrl-C')
      .option('--last <n>', 'at most so many', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <seq>', 'from this event on, without it', whole(0, 999_999_999_999))
      .option('--task <task>', 'only of this task')
      .option('--node <node>', 'only of this node, by name or id')
      .option('--kind <kind>', 'only of this kind, or of these, separated by commas'),
    'headroom events --follow',
    'headroom events --kind swap_decided,swap_in_decided',
    'headroom events --node a100-1 --last 100 -o wide',
  ).action(async (options: EventsOptions) => {
    const { events } = await import('./operator/events.ts')
    setExit(await events(options))
  })
  withExamples(
    events
      .command('verify')
      .description('look whether the log of events is as it was written; ends with 1 when it is not')
      .argument('[path]', 'data directory, store file or a copy of one (CONTROLLER_DATA_DIR, or else ./data)')
      .addOption(
        new Option(
          '--noted <seq:hash>',
          'what an earlier verify said of the last event; may be repeated',
        ).argParser(notedLinks),
      )
      .option('--json', 'print the result as JSON'),
    'headroom events verify',
    'headroom events verify backup/headroom.db --noted 48213:5f0c…',
  ).action(async (path: string | undefined, options: VerifyEventsOptions) => {
    const { verifyEventLog } = await import('./verify-events.ts')
    setExit(verifyEventLog(path, options, process.env))
  })
}

function addWhyPending(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('why-pending')
        .description('why tasks wait: all of them, or one in detail')
        .argument('[task]', 'id'),
    ).option('--limit <n>', 'at most so many', whole(1, MAX_ROWS), DEFAULT_TASK_ROWS),
    'headroom why-pending',
    'headroom why-pending 0b6f4c1e-…',
  ).action(async (id: string | undefined, options: WhyPendingOptions) => {
    const { whyPending } = await import('./operator/why-pending.ts')
    setExit(await whyPending(id, options))
  })
}

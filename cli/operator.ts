/** The operator's commands: their arguments and options. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { remote, withServer, repeatable, withExamples, type SetExit } from './command/command-shape.ts'
import { notedLinks, priority, timeWithin, whole } from './command/option-values.ts'
import type { ChangeOptions, HistoryOptions } from './config/config.ts'
import type { DecisionsOptions } from './events/decisions.ts'
import type { EventsOptions } from './events/events.ts'
import type { GroupChangeOptions, GroupCreateOptions } from './groups/groups.ts'
import type { LogsOptions } from './tasks/logs.ts'
import type { NodeDrainOptions } from './nodes/nodes.ts'
import type { CommandOptions } from './command/session.ts'
import type { TaskListOptions } from './tasks/tasks.ts'
import type { TopOptions } from './status/top.ts'
import type { WhyPendingOptions } from './tasks/why-pending.ts'
import { addRecoveryCommands } from './tasks/recovery-commands.ts'
import { addTwinCommands } from './twin/twin-commands.ts'
import type { VerifyEventsOptions } from './events/verify-events.ts'

/** Equals the list in controller/api/tasks/schema.ts; a test compares them. */
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

/** Equals the list in controller/model/decision.ts; a test compares them. */
export const DECISION_KINDS = [
  'placement',
  'swap_out',
  'swap_in',
  'growth_granted',
  'growth_refused',
] as const

const DRY_RUN = 'show the effect without changing anything'
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
        .description('show the cluster on one page; exits with 1 when the controller is not ready'),
    ),
    'headroom status',
    'headroom status -o json | jq .summary.vram',
  ).action(async (options: CommandOptions) => {
    const { status } = await import('./status/status.ts')
    setExit(await status(options))
  })
}

function addTop(program: Command, setExit: SetExit): void {
  withExamples(
    remote(program.command('top').description('show nodes and tasks, updated until Ctrl-C'))
      .addOption(
        new Option('--interval <time>', 'time between updates')
          .argParser(timeWithin(100, 3_600_000))
          .default(2_000, '2s'),
      )
      .option('--once', 'print once, also on a terminal'),
    'headroom top',
    'headroom top --interval 500ms',
    'headroom top --once -o wide',
  ).action(async (options: TopOptions) => {
    const { top } = await import('./status/top.ts')
    setExit(await top(options))
  })
}

function addNode(program: Command, setExit: SetExit): void {
  const node = program.command('node').description('GPU nodes; a node is addressed by its name or id')
  withExamples(
    remote(node.command('list').description('list all nodes, in order of registration')),
    'headroom node list -o wide',
  ).action(async (options: CommandOptions) => {
    const { nodeList } = await import('./nodes/nodes.ts')
    setExit(await nodeList(options))
  })
  withExamples(
    remote(node.command('show').description('show one node and its GPUs').argument('<node>', 'name or id')),
    'headroom node show a100-1',
  ).action(async (name: string, options: CommandOptions) => {
    const { nodeShow } = await import('./nodes/nodes.ts')
    setExit(await nodeShow(name, options))
  })
  withExamples(
    remote(
      node
        .command('set')
        .description(
          'set overrides of a node: overcommit (percent) and reserve (VRAM of each GPU); null removes one',
        ),
    )
      .argument('<node>', 'name or id')
      .argument('<setting=value...>', 'overcommit=50, reserve=2Gi'),
    'headroom node set a100-1 overcommit=50 reserve=4Gi',
    'headroom node set a100-1 overcommit=null  # the global default again',
  ).action(async (name: string, settings: string[], options: CommandOptions) => {
    const { nodeSet } = await import('./nodes/nodes.ts')
    setExit(await nodeSet(name, settings, options))
  })
  for (const [verb, what] of [
    ['cordon', 'stop placing tasks on a node; its tasks stay'],
    ['uncordon', 'resume placing tasks on a node; ends a drain'],
  ] as const) {
    withExamples(
      remote(node.command(verb).description(what).argument('<node>', 'name or id')),
      `headroom node ${verb} a100-1`,
    ).action(async (name: string, options: CommandOptions) => {
      const { nodeCordon } = await import('./nodes/nodes.ts')
      setExit(await nodeCordon(name, verb === 'cordon', options))
    })
  }
  withExamples(
    remote(
      node
        .command('drain')
        .description('drain a node: no new tasks, and its tasks finish or are requeued; ends with uncordon'),
    )
      .argument('<node>', 'name or id')
      .option('--requeue', 'stop tasks with on_node_loss requeue; they wait for another node')
      .option('--after <time>', 'with --requeue: time to let them finish first', timeWithin(0, 604_800_000)),
    'headroom node drain a100-1',
    'headroom node drain a100-1 --requeue --after 1h',
  ).action(async (name: string, options: NodeDrainOptions) => {
    const { nodeDrain } = await import('./nodes/nodes.ts')
    setExit(await nodeDrain(name, options))
  })
}

function addTask(program: Command, setExit: SetExit): void {
  const task = program.command('task').description('GPU tasks')
  addTaskList(task, setExit)
  addTaskLogs(task, setExit)
  addTaskActions(task, setExit)
  withExamples(
    remote(task.command('show').description('show one task, open or ended').argument('<task>', 'id')),
    'headroom task show 0b6f4c1e-…',
  ).action(async (id: string, options: CommandOptions) => {
    const { taskShow } = await import('./tasks/tasks.ts')
    setExit(await taskShow(id, options))
  })
  withExamples(
    remote(
      task
        .command('explain')
        .description('explain why a task waits, or where it is placed')
        .argument('<task>', 'id'),
    ),
    'headroom task explain 0b6f4c1e-…',
  ).action(async (id: string, options: CommandOptions) => {
    const { taskExplain } = await import('./tasks/explain.ts')
    setExit(await taskExplain(id, options))
  })
  withExamples(
    remote(task.command('set').description('change a task; VRAM and groups only while it is pending'))
      .argument('<task>', 'id')
      .argument(
        '<field=value...>',
        'noswap=1, priority=P0, vram_mib=8Gi, groups=a,b, labels.team=x (an empty value removes a label)',
      ),
    'headroom task set 0b6f4c1e-… noswap=1 priority=P0',
    'headroom task set 0b6f4c1e-… labels.team=vision',
  ).action(async (id: string, settings: string[], options: CommandOptions) => {
    const { taskSet } = await import('./tasks/tasks.ts')
    setExit(await taskSet(id, settings, options))
  })
  withExamples(
    remote(
      task
        .command('cancel')
        .description(
          'cancel tasks; the GPU server of a placed task sends SIGTERM, and SIGKILL after its stop grace',
        )
        .argument('<task...>', 'ids')
        .option('--now', 'send SIGKILL at once, also to a task that is stopping'),
    ),
    'headroom task cancel 0b6f4c1e-…',
    'headroom task list --state pending --name sweep -o jsonl | jq -r .id | xargs headroom task cancel',
  ).action(async (ids: string[], options: CommandOptions & { readonly now?: boolean }) => {
    const { taskCancel } = await import('./tasks/tasks.ts')
    setExit(await taskCancel(ids, options))
  })
}

function addTaskActions(task: Command, setExit: SetExit): void {
  for (const [action, what] of [
    ['hold', 'put pending tasks on hold: they are not placed until released'],
    ['release', 'release tasks that are on hold'],
    ['swap-out', 'swap idle tasks out of VRAM; each stays out until it wants the GPU'],
    ['swap-in', 'swap tasks back into VRAM'],
  ] as const) {
    withExamples(
      remote(task.command(action).description(what).argument('<task...>', 'ids')),
      `headroom task ${action} 0b6f4c1e-…`,
    ).action(async (ids: string[], options: CommandOptions) => {
      const { taskAction: taskByHand } = await import('./tasks/tasks.ts')
      setExit(await taskByHand(action, ids, options))
    })
  }
}

function addTaskLogs(task: Command, setExit: SetExit): void {
  withExamples(
    withServer(task.command('logs').description('print the output of a task, from its latest attempt'))
      .argument('<task>', 'id')
      .addOption(new Option('--stream <stream>', 'only this stream, on stdout').choices(['stdout', 'stderr']))
      .option('-f, --follow', 'keep printing new output until the task ends, or Ctrl-C')
      .option('--offset <bytes>', 'start at this byte of that stream', whole(0, 999_999_999_999)),
    'headroom task logs 0b6f4c1e-… --follow',
    'headroom task logs 0b6f4c1e-… --stream stderr > errors.txt',
  ).action(async (id: string, options: LogsOptions) => {
    const { taskLogs } = await import('./tasks/logs.ts')
    setExit(await taskLogs(id, options))
  })
}

function addTaskList(task: Command, setExit: SetExit): void {
  withExamples(
    remote(task.command('list').description('list tasks, newest submission first'))
      .addOption(
        new Option('--state <state>', 'a list (running, pending, completed, all) or an exact state').choices(
          TASK_STATE_FILTERS,
        ),
      )
      .option('--priority <p>', 'P0 (highest) to P4', priority)
      .option('--node <node>', 'placed on this node, by name or id')
      .option('--group <group>', 'may run in this group')
      .option('--owner <owner>', 'owner of the task')
      .option('--name <text>', 'part of the name')
      .option('--limit <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_TASK_ROWS),
    'headroom task list --state pending -o wide',
    'headroom task list --node a100-1 --limit 1000 -o jsonl',
  ).action(async (options: TaskListOptions) => {
    const { taskList } = await import('./tasks/tasks.ts')
    setExit(await taskList(options))
  })
}

function addGroup(program: Command, setExit: SetExit): void {
  const group = program
    .command('group')
    .description('named sets of nodes; tasks that target a group run only there')
  withExamples(
    remote(group.command('list').description('list all groups, by name')),
    'headroom group list',
  ).action(async (options: CommandOptions) => {
    const { groupList } = await import('./groups/groups.ts')
    setExit(await groupList(options))
  })
  withExamples(
    remote(group.command('show').description('show one group').argument('<group>', 'name of the group')),
    'headroom group show training -o yaml',
  ).action(async (id: string, options: CommandOptions) => {
    const { groupShow } = await import('./groups/groups.ts')
    setExit(await groupShow(id, options))
  })
  withExamples(
    remote(
      group
        .command('create')
        .description('create a group; its nodes leave the common pool at once')
        .argument('<group>', 'name of the group'),
    )
      .option('--description <text>', 'purpose of the group')
      .option('--node <node>', 'a node of the group, by name or id; may be repeated', repeatable, [])
      .option('--dry-run', DRY_RUN),
    'headroom group create training --node a100-1 --node a100-2',
  ).action(async (id: string, options: GroupCreateOptions) => {
    const { groupCreate } = await import('./groups/groups.ts')
    setExit(await groupCreate(id, options))
  })
  withExamples(
    remote(group.command('delete').description('delete a group').argument('<group>', 'name of the group'))
      .option('--force', 'also if pending tasks target it')
      .option('--dry-run', DRY_RUN),
    'headroom group delete training',
    'headroom group delete training --dry-run',
  ).action(async (id: string, options: GroupChangeOptions & { readonly force?: boolean }) => {
    const { groupDelete } = await import('./groups/groups.ts')
    setExit(await groupDelete(id, options))
  })
  addGroupMembers(group, setExit)
}

function addGroupMembers(group: Command, setExit: SetExit): void {
  const member = (verb: string, what: string): Command =>
    remote(
      group
        .command(verb)
        .description(what)
        .argument('<group>', 'name of the group')
        .argument('<node>', 'name or id'),
    ).option('--dry-run', DRY_RUN)
  withExamples(member('add-node', 'add a node to a group'), 'headroom group add-node training a100-3').action(
    async (id: string, node: string, options: GroupChangeOptions) => {
      const { groupAddNode } = await import('./groups/groups.ts')
      setExit(await groupAddNode(id, node, options))
    },
  )
  withExamples(
    member('remove-node', 'remove a node from a group'),
    'headroom group remove-node training a100-3',
  ).action(async (id: string, node: string, options: GroupChangeOptions) => {
    const { groupRemoveNode } = await import('./groups/groups.ts')
    setExit(await groupRemoveNode(id, node, options))
  })
}

function addConfig(program: Command, setExit: SetExit): void {
  const config = program.command('config').description('the global settings')
  withExamples(
    remote(
      config
        .command('get')
        .description('show all settings, or the value of one')
        .argument('[setting]', 'name of the setting'),
    ),
    'headroom config get',
    'headroom config get default_vram_overcommit_percent',
  ).action(async (setting: string | undefined, options: CommandOptions) => {
    const { configGet } = await import('./config/config.ts')
    setExit(await configGet(setting, options))
  })
  withExamples(
    remote(
      config
        .command('set')
        .description('change settings; others keep their values')
        .argument('<setting=value...>', 'times may have a unit (5m), sizes too (2Gi)'),
    ).option('--dry-run', DRY_RUN),
    'headroom config set default_vram_overcommit_percent=50 --dry-run',
    'headroom config set default_vram_overcommit_percent=50',
    'headroom config set idle_swap_out_seconds=5m safety_reserve_mib=2Gi max_residency_seconds=null',
  ).action(async (settings: string[], options: ChangeOptions) => {
    const { configSet } = await import('./config/config.ts')
    setExit(await configSet(settings, options))
  })
  withExamples(
    remote(
      config.command('history').description('list changes of the settings with author and time, newest last'),
    ).option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS),
    'headroom config history',
  ).action(async (options: HistoryOptions) => {
    const { configHistory } = await import('./config/config.ts')
    setExit(await configHistory(options))
  })
  withExamples(
    remote(
      config
        .command('restore')
        .description('restore an earlier revision as a new one')
        .argument('<revision>', 'number of the revision'),
    ).option('--dry-run', DRY_RUN),
    'headroom config restore 3 --dry-run',
    'headroom config restore 3',
  ).action(async (revision: string, options: ChangeOptions) => {
    const { configRestore } = await import('./config/config.ts')
    setExit(await configRestore(revision, options))
  })
}

function addDecisions(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('decisions')
        .description(
          'list decisions and their inputs: placements, swaps, growths; newest last, or one in detail',
        )
        .argument('[number]', 'number of the decision'),
    )
      .option('--task <task>', 'about this task, or with it as victim')
      .option('--node <node>', 'only on this node, by name or id')
      .addOption(new Option('--kind <kind>', 'only of this kind').choices(DECISION_KINDS))
      .option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <number>', 'start after this decision', whole(0, 999_999_999_999)),
    'headroom decisions --kind swap_out --node a100-1',
    'headroom decisions --task 0b6f4c1e-… --last 5',
    'headroom decisions 4711',
  ).action(async (number: string | undefined, options: DecisionsOptions) => {
    const { decisions } = await import('./events/decisions.ts')
    setExit(await decisions(number, options))
  })
}

function addEvents(program: Command, setExit: SetExit): void {
  const events = withExamples(
    remote(program.command('events').description('list events, oldest first'))
      .option('-f, --follow', 'keep printing new events until Ctrl-C')
      .option('--last <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_EVENT_ROWS)
      .option('--after <seq>', 'start after this event', whole(0, 999_999_999_999))
      .option('--task <task>', 'only of this task')
      .option('--node <node>', 'only of this node, by name or id')
      .option('--kind <kind>', 'only this kind, or several kinds separated by commas'),
    'headroom events --follow',
    'headroom events --kind swap_decided,swap_in_decided',
    'headroom events --node a100-1 --last 100 -o wide',
  ).action(async (options: EventsOptions) => {
    const { events } = await import('./events/events.ts')
    setExit(await events(options))
  })
  withExamples(
    events
      .command('verify')
      .description('check that the event log is unchanged since it was written; exits with 1 when it is not')
      .argument('[path]', 'data directory, store file or a copy of one (CONTROLLER_DATA_DIR, or else ./data)')
      .addOption(
        new Option(
          '--noted <seq:hash>',
          'result of an earlier verify for its last event; may be repeated',
        ).argParser(notedLinks),
      )
      .option('--json', 'print the result as JSON'),
    'headroom events verify',
    'headroom events verify backup/headroom.db --noted 48213:5f0c…',
  ).action(async (path: string | undefined, options: VerifyEventsOptions) => {
    const { verifyEventLog } = await import('./events/verify-events.ts')
    setExit(verifyEventLog(path, options, process.env))
  })
}

function addWhyPending(program: Command, setExit: SetExit): void {
  withExamples(
    remote(
      program
        .command('why-pending')
        .description('explain why tasks wait: all of them, or one in detail')
        .argument('[task]', 'id'),
    ).option('--limit <n>', 'maximum number of rows', whole(1, MAX_ROWS), DEFAULT_TASK_ROWS),
    'headroom why-pending',
    'headroom why-pending 0b6f4c1e-…',
  ).action(async (id: string | undefined, options: WhyPendingOptions) => {
    const { whyPending } = await import('./tasks/why-pending.ts')
    setExit(await whyPending(id, options))
  })
}

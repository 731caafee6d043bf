/** `headroom task …`. */
import type { HeadroomClient, Task, TaskPatch, TaskQuery } from '../../clients/typescript/client.ts'
import { ApiError } from '../../clients/typescript/errors.ts'
import { EXIT_OK, UsageError } from '../../services/exit-codes.ts'
import { age, byteSize, percent, size } from '../output/figures.ts'
import { cutTo, printDone, printList, printOne, type Column, type Field } from '../output/table.ts'
import { nodeNamed, openClient, pairsOf, type CommandOptions } from '../command/session.ts'
import { settingValue } from '../command/setting-values.ts'
import { taskLabel } from '../command/task-label.ts'
import { taskNamed } from '../command/task-named.ts'
import { visible, type Palette } from '../output/terminal-text.ts'
import { ID_COLUMN, NAME_COLUMN } from './task-columns.ts'

export interface TaskListOptions extends CommandOptions {
  readonly state?: NonNullable<TaskQuery['state']>
  readonly priority?: NonNullable<TaskQuery['priority']>
  readonly node?: string
  readonly group?: string
  readonly owner?: string
  readonly withoutOwner?: boolean
  readonly name?: string
  readonly limit: number
}

/** Maximum items of one page. */
const PAGE = 200

export async function taskList({
  output,
  limit,
  node,
  name,
  state,
  priority,
  group,
  owner,
  withoutOwner,
  ...server
}: TaskListOptions): Promise<number> {
  const client = openClient(server)
  const query = {
    ...(state === undefined ? {} : { state }),
    ...(priority === undefined ? {} : { priority }),
    ...(group === undefined ? {} : { group }),
    ...(owner === undefined ? {} : { owner }),
    ...(withoutOwner === undefined ? {} : { without_owner: withoutOwner }),
    ...(name === undefined ? {} : { q: name }),
    ...(node === undefined ? {} : { node: (await nodeNamed(client, node)).node_id }),
  }
  const tasks: Task[] = []
  for await (const task of client.tasks.each({ ...query, limit: Math.min(limit, PAGE) })) {
    tasks.push(task)
    if (tasks.length === limit) break
  }
  await printList(tasks, taskColumns(Date.now()), output)
  return EXIT_OK
}

export async function taskShow(text: string, { output, ...server }: CommandOptions): Promise<number> {
  const client = openClient(server)
  const task = await client.tasks.get(await taskNamed(client, text))
  await printOne(task, fieldsOf(task, Date.now(), await addressesOf(client, task)), output)
  return EXIT_OK
}

/** Returns for each declared port the address for clients, or why the server forwards nothing to it. */
async function addressesOf(client: HeadroomClient, task: Task): Promise<readonly string[]> {
  if (task.ports.length === 0 || task.placement === null) return []
  const assignment = await client.tasks.assignment(task.id).catch((error: unknown) => {
    if (error instanceof ApiError) return null
    throw error
  })
  return (assignment?.ports ?? []).map(({ name, address, detail }) => `${name}: ${address ?? detail}`)
}

export interface CancelOptions extends CommandOptions {
  readonly now?: boolean
}

/** Tries all of them; the first failure determines the exit code. */
export async function taskCancel(
  texts: readonly string[],
  { output, now, ...server }: CancelOptions,
): Promise<number> {
  const client = openClient(server)
  await forEach(client, texts, async (id) => {
    const task = await client.tasks.cancel(id, { now: now === true })
    await printDone(
      task,
      `${taskLabel(task)}: ${task.state === 'cancelled' ? 'cancelled' : 'stopping'}`,
      output,
    )
  })
  return EXIT_OK
}

/** Errors after which the other tasks are still tried. */
const OF_ONE_TASK: ReadonlySet<string> = new Set(['ApiError', 'CommandFailure', 'UsageError'])

/** @throws the first failure, after all were tried */
async function forEach(
  client: HeadroomClient,
  texts: readonly string[],
  act: (id: string) => Promise<void>,
): Promise<void> {
  let failure: Error | null = null
  for (const text of texts) {
    try {
      await act(await taskNamed(client, text))
    } catch (error) {
      if (texts.length === 1 || !(error instanceof Error) || !OF_ONE_TASK.has(error.name)) throw error
      process.stderr.write(`error: ${visible(text)}: ${visible(error.message)}\n`)
      failure ??= error
    }
  }
  if (failure !== null) throw failure
}

export interface RequeueOptions extends CommandOptions {
  readonly confirmFenced?: boolean
}

/** Tries all of them; the first failure determines the exit code. */
export async function taskRequeue(
  texts: readonly string[],
  { output, confirmFenced = false, ...server }: RequeueOptions,
): Promise<number> {
  const client = openClient(server)
  await forEach(client, texts, async (id) => {
    const task = await client.tasks.requeue(id, { confirm_fenced: confirmFenced })
    const when = confirmFenced ? '' : ' as soon as its server has stopped it'
    await printDone(task, `${taskLabel(task)}: requeued${when}`, output)
  })
  return EXIT_OK
}

export type TaskAction = 'hold' | 'release' | 'swap-out' | 'swap-in'

const DONE: Readonly<Record<TaskAction, string>> = {
  hold: 'on hold; not placed until released',
  release: 'released',
  'swap-out': 'swap-out requested',
  'swap-in': 'swap-in requested',
}

/** Tries all of them; the first failure determines the exit code. */
export async function taskAction(
  action: TaskAction,
  texts: readonly string[],
  { output, ...server }: CommandOptions,
): Promise<number> {
  const client = openClient(server)
  const { tasks } = client
  const verbs = {
    hold: tasks.hold,
    release: tasks.release,
    'swap-out': tasks.swapOut,
    'swap-in': tasks.swapIn,
  }
  await forEach(client, texts, async (id) => {
    const task = await verbs[action](id)
    await printDone(task, `${taskLabel(task)}: ${DONE[action]}`, output)
  })
  return EXIT_OK
}

/** Parses `noswap=1 priority=0 vram_mib=8Gi groups=a,b labels.team=x`; an empty value removes a label. */
export async function taskSet(
  text: string,
  changes: readonly string[],
  { output, ...server }: CommandOptions,
): Promise<number> {
  const patch = patchOf(pairsOf(changes))
  const client = openClient(server)
  const task = await client.tasks.update(await taskNamed(client, text), patch)
  await printDone(task, `${taskLabel(task)}: changed`, output)
  return EXIT_OK
}

function patchOf(pairs: ReadonlyMap<string, string>): TaskPatch {
  const patch: Record<string, unknown> = {}
  const labels: Record<string, string | null> = {}
  for (const [name, text] of pairs) {
    if (name.startsWith('labels.')) labels[name.slice('labels.'.length)] = text === '' ? null : text
    else if (name === 'groups') patch[name] = text === '' ? [] : text.split(',')
    else if (name === 'priority') patch[name] = settingValue(name, text.replace(/^P(?=\d$)/, ''))
    else patch[name] = settingValue(name, text)
  }
  if (Object.keys(labels).length > 0) patch['labels'] = labels
  if (Object.keys(patch).length === 0)
    throw new UsageError('nothing to set: specify at least one FIELD=VALUE')
  return patch as TaskPatch
}

/** Characters on a narrow terminal. */
const BRIEF_NODE = 10

export function taskColumns(now: number): readonly Column<Task>[] {
  return [
    ID_COLUMN,
    NAME_COLUMN,
    { title: 'STATE', of: stateOf, colour: stateColour },
    { title: 'RESIDENCY', of: (task) => (task.residency === 'none' ? null : task.residency) },
    { title: 'PRIO', of: (task) => `P${task.priority}` },
    { title: 'VRAM', isNumber: true, of: vramOf },
    {
      title: 'NODE',
      of: (task) => task.placement?.node_name ?? null,
      brief: ({ placement }) => (placement === null ? null : cutTo(BRIEF_NODE, placement.node_name)),
    },
    { title: 'AGE', isNumber: true, of: (task) => age(task.submitted_at, now) },
    { title: 'WHY', isWide: true, of: (task) => task.wait?.reason ?? task.end_reason },
    { title: 'NOSWAP', isWide: true, isNumber: true, of: (task) => task.noswap },
    { title: 'SWAPS', isWide: true, isNumber: true, of: (task) => task.swap_outs },
    { title: 'STARVED', isWide: true, isNumber: true, of: (task) => percent(task.starvation_percent.total) },
    { title: 'EXIT', isWide: true, isNumber: true, of: (task) => task.exit_code },
    { title: 'GROUPS', isWide: true, of: (task) => task.groups.join(',') },
    { title: 'OWNER', isWide: true, of: (task) => task.owner },
    { title: 'COMMAND', isWide: true, of: (task) => task.command?.join(' ') ?? null },
  ]
}

/** Returns `2 × 8Gi`, or `whole GPU`. */
function vramOf(task: Task): string {
  const each = task.vram_mib === null ? 'whole GPU' : size(task.vram_mib)
  return task.gpu_count === 1 ? each : `${task.gpu_count}×${each}`
}

/** Returns its state, and operator actions on it. */
function stateOf({ state, held, stopping_since }: Task): string {
  if (stopping_since !== null) return `${state}, stopping`
  return held ? `${state}, on hold` : state
}

export function stateColour(text: string, { state }: Pick<Task, 'state'>, palette: Palette): string {
  switch (state) {
    case 'running':
    case 'assigned':
      return palette.green(text)
    case 'pending':
    case 'unreachable':
      return palette.yellow(text)
    case 'failed':
    case 'lost':
      return palette.red(text)
    case 'completed':
    case 'cancelled':
      return text
  }
}

/** Includes the residual VRAM of its hooks. */
function residencyOf({ residency, placement }: Task): string {
  const keptMib = residency === 'swapped_out' ? (placement?.residual_mib ?? 0) : 0
  return keptMib === 0 ? residency : `${residency}, ${size(keptMib)} still in use on each GPU`
}

function wakeWords({ ports, wake_on_request: wakes }: Task): string {
  if (wakes === false) return 'no'
  return wakes === true || ports.length > 0
    ? 'yes, swapped in only on request'
    : 'yes, also swapped in by probes'
}

/** Includes the memory limit that its node has set, if it contains the VRAM. */
function limitsOf({ memory_mib: memory, cpus, pids_limit: pids, vram_limit_mib: vram, placement }: Task) {
  const set = placement?.memory_limit_mib ?? memory
  const withVram = set === memory || set === null ? '' : ` (${size(set)} including its VRAM)`
  const parts = [
    memory === null ? '' : `memory ${size(memory)}${withVram}`,
    cpus === null ? '' : `${cpus} CPUs`,
    pids === null ? '' : `${pids} processes`,
    vram === null ? '' : `VRAM ${size(vram)} per GPU`,
  ].filter((part) => part !== '')
  return parts.length === 0 ? null : parts.join(', ')
}

function fieldsOf(task: Task, now: number, addresses: readonly string[] = []): readonly Field[] {
  const { placement, wait, starvation_percent: starved } = task
  const labels = Object.entries(task.labels).map(([name, value]) => `${name}=${value}`)
  const where =
    placement === null
      ? null
      : `${placement.node_name} (${placement.node_id}), GPU ${placement.gpus.join(', ')}`
  return [
    ['ID', task.id],
    ['name', task.name],
    ['state', stateOf(task)],
    ['why', wait?.sentence ?? task.end_reason],
    ['residency', residencyOf(task)],
    ['where', where],
    ['VRAM', `${vramOf(task)}${task.gpu_mode === 'exclusive' ? ', exclusive' : ''}`],
    ['swappable', task.noswap === 1 ? 'no' : `yes, ${task.swap_outs} swap-outs so far`],
    ['priority', `P${task.priority}`],
    ['groups', task.groups],
    ['labels', labels],
    ['owner', task.owner],
    ['command', task.command === null ? 'none: a lease' : task.command.join(' ')],
    ['image', task.image],
    ['image digest', task.image_digest],
    ['ports', task.ports.map(({ name, target, protocol }) => `${name}=${target}/${protocol}`)],
    ['addresses', addresses],
    ['wakes on request', wakeWords(task)],
    ['workdir', task.workdir],
    ['cwd', task.cwd],
    ['mounts', task.mounts],
    ['limits', limitsOf(task)],
    [
      'swapped out after',
      task.idle_swap_out_seconds === null ? 'cluster default' : `${task.idle_swap_out_seconds} s idle`,
    ],
    ['kept warm', task.keep_warm ? 'yes, swapped out last in its class' : 'no'],
    ['swap method', task.noswap === 1 ? 'none' : (task.swap_method ?? 'driver')],
    ['variables', [...task.env_names, ...Object.keys(task.secrets).map((name) => `${name} (secret)`)]],
    ['on node loss', task.on_node_loss],
    ['stop grace', task.stop_grace_seconds === null ? 'cluster default' : `${task.stop_grace_seconds} s`],
    [
      'requeues',
      `${task.requeues} after short attempts, ` +
        `${task.max_requeues === null ? 'no limit' : `at most ${task.max_requeues}`}`,
    ],
    ['submitted', task.submitted_at],
    ['first started', task.first_started_at],
    ['finished', task.finished_at],
    ['age', age(task.submitted_at, now)],
    ['refused by', task.start_refusals.map(({ node_name: node, detail }) => `${node}: ${detail}`)],
    ['prepared by', task.preparing.map(preparingWords)],
    ['next attempt', task.start_pause?.until ?? null],
    ['attempt', task.attempt],
    ['exit code', task.exit_code],
    [
      'starvation',
      `${percent(starved.total)} (queue ${percent(starved.queue)}, swap ${percent(starved.swap)}, ` +
        `compute ${percent(starved.compute)})`,
    ],
  ]
}

function preparingWords({ node_name, state, bytes_done, bytes_total }: Task['preparing'][number]): string {
  const bytes = bytes_total === null ? '' : `, ${byteSize(bytes_done)} of ${byteSize(bytes_total)}`
  return state === 'prepared' ? `${node_name}: ready` : `${node_name}: in progress${bytes}`
}

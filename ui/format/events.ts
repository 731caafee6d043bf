/** Texts for events. Pure. */
import type { EventBody, EventPage } from '../../controller/api/observe/event-schema.ts'
import { mib, seconds, whole } from './figures.ts'

type Kind = EventBody['kind']
type Names = EventPage['names']
type Value = EventBody['data'][string]

export const EVENT_WORDS: Readonly<Record<Kind, string>> = {
  config_changed: 'configuration changed',
  node_registered: 'node registered',
  node_status: 'node status changed',
  node_config_changed: 'node settings changed',
  node_forgotten: 'node removed',
  node_drain: 'node drain',
  node_auto_cordon: 'node cordoned or uncordoned automatically',
  group_changed: 'group changed',
  group_deleted: 'group deleted',
  task_submitted: 'task submitted',
  task_updated: 'task changed',
  task_held: 'task put on hold',
  task_released: 'task released',
  task_placed: 'task placed',
  task_started: 'task started',
  task_returned: 'task returned to the queue',
  task_paused: 'task delayed before its next start',
  task_resumed: 'task may start again',
  task_finished: 'task ended',
  task_late_result: 'late result of an earlier attempt',
  task_unreachable: 'task unreachable',
  task_reachable: 'task reachable again',
  task_residency: 'task residency changed',
  swap_decided: 'swap-out decided',
  swap_in_decided: 'swap-in decided',
  swap_failed: 'swap failed',
  swap_ordered: 'swap requested manually',
  task_became_noswap: 'task became noswap',
  growth_granted: 'growth granted',
  growth_refused: 'growth refused',
  reserve_breached: 'safety reserve breached',
  requeue_freeze: 'requeueing paused or resumed',
  broker_absence: 'broker connection lost or restored',
  duplicate_node: 'duplicate node name',
  store_behind: 'store fell behind the nodes or caught up',
  recovery: 'recovery started or ended',
  attempt_quarantined: 'unknown attempt quarantined',
  attempt_settled: 'unknown attempt adopted or stopped',
  leader_changed: 'leader changed',
}

export function eventWords(kind: Kind): string {
  return (EVENT_WORDS as Readonly<Record<string, string>>)[kind] ?? kind.replaceAll('_', ' ')
}

/** Tasks that an event concerns: the victims of a swap-out decision, otherwise the task of the event. */
export function tasksOf({
  kind,
  task_id: taskId,
  data,
}: Pick<EventBody, 'kind' | 'task_id' | 'data'>): readonly string[] {
  const victims = kind === 'swap_decided' && Array.isArray(data['victims']) ? data['victims'] : []
  const ids = victims
    .map((victim: Value) => (victim as { readonly id?: unknown } | null)?.id)
    .filter((id) => typeof id === 'string')
  return ids.length > 0 ? ids : taskId === null ? [] : [taskId]
}

/** Internal counters, not shown. */
const LEFT_OUT: ReadonlySet<string> = new Set(['seq', 'generation', 'decision', 'closed_rounds'])
const MAX_FACTS = 8
const MAX_CHARACTERS = 60

/**
 * `GPU 0, 2, 9 879 MiB, after swap-outs`; ids are replaced by names. Unknown fields are shown as they are.
 */
export function factWords(data: EventBody['data'], names: Names = {}): string {
  const facts = Object.entries(data)
    .filter(([name, value]) => value !== null && !LEFT_OUT.has(name))
    .map(([name, value]) =>
      Object.hasOwn(FACTS, name) ? FACTS[name]?.(value, names) : otherWords(name, value),
    )
    .filter((words) => words !== undefined && words !== '')
  return facts.length > MAX_FACTS ? `${facts.slice(0, MAX_FACTS).join(', ')}, …` : facts.join(', ')
}

const FACTS: Readonly<Record<string, (value: Value, names: Names) => string>> = {
  attempt: (value) => (value === 1 ? '' : `attempt ${String(value)}`),
  because: (value, names) => {
    const id = String(value).replace(/^for /, '')
    const task = names[id] ?? (id === value && !/^[0-9a-f]{8}-/.test(id) ? null : cut(id))
    return task === null ? `because of ${spaced(value)}` : `for ${task}`
  },
  for: (value) => `for a ${value === 'swap_in' ? 'swap-in' : spaced(value)}`,
  gpus: (value) =>
    Array.isArray(value) ? `GPU ${value.join(', ')}` : value === 1 ? '' : `${String(value)} GPUs`,
  mib: (value) => mib(numberOf(value)),
  missing: (value) =>
    listed(value, (item) => `${mib(numberOf(item['mib']))} missing on GPU ${String(item['gpu'])}`),
  mode: (value) => (value === 'shared' ? '' : spaced(value)),
  noswap: (value) => (value === 0 ? 'swappable' : 'noswap'),
  priority: (value) => `P${String(value)}`,
  residency: spaced,
  state: spaced,
  status: spaced,
  victims: (value, names) =>
    listed(
      value,
      (item) =>
        `${names[String(item['id'])] ?? cut(String(item['id']))} swapped out of GPU ${String(item['gpu'])}`,
    ),
  when: (value) =>
    value === 'after_swap' ? 'after swap-outs' : value === 'now' ? 'immediately' : spaced(value),
}

function otherWords(name: string, value: Value): string {
  if (typeof value === 'boolean') return `${value ? '' : 'not '}${spaced(name)}`
  if (typeof value === 'number' && name.endsWith('_mib')) return `${labelled(name, '_mib')}${mib(value)}`
  if (typeof value === 'number' && name.endsWith('_ms'))
    return `${labelled(name, '_ms')}${seconds(value / 1000)}`
  if (typeof value === 'number' && name.endsWith('_percent'))
    return `${labelled(name, '_percent')}${whole(value)}%`
  return `${name.replaceAll('_', ' ')} ${cut(typeof value === 'string' ? value : JSON.stringify(value))}`
}

/** `waited_ms` becomes `waited `; for `vram_mib` the unit is enough. */
function labelled(name: string, unit: string): string {
  const label = name.slice(0, -unit.length).replaceAll('_', ' ')
  return label === 'vram' || label === 'demand' || label === '' ? '' : `${label} `
}

function listed(value: Value, wordsOf: (item: Readonly<Record<string, Value>>) => string): string {
  if (!Array.isArray(value)) return cut(JSON.stringify(value))
  return value.map((item) => wordsOf((item ?? {}) as Readonly<Record<string, Value>>)).join(', ')
}

function numberOf(value: Value | undefined): number | null {
  return typeof value === 'number' ? value : null
}

function spaced(value: Value): string {
  return String(value).replaceAll('_', ' ')
}

function cut(text: string): string {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
}

/** Events, for people. Pure. */
import type { EventBody, EventPage } from '../../controller/api/schema/event.ts'
import { mib, seconds, whole } from './figures.ts'

type Kind = EventBody['kind']
type Names = EventPage['names']
type Value = EventBody['data'][string]

export const EVENT_WORDS: Readonly<Record<Kind, string>> = {
  config_changed: 'configuration changed',
  node_registered: 'node registered',
  node_status: 'node changed its status',
  node_config_changed: 'settings of a node changed',
  node_forgotten: 'node forgotten',
  node_drain: 'drain of a node',
  node_auto_cordon: 'node closed or opened by itself',
  group_changed: 'group changed',
  group_deleted: 'group deleted',
  task_submitted: 'task submitted',
  task_updated: 'task changed',
  task_held: 'task held back',
  task_released: 'task released',
  task_placed: 'task placed',
  task_started: 'task started',
  task_returned: 'task back in the queue',
  task_paused: 'task waits for another start',
  task_resumed: 'task may be started again',
  task_finished: 'task ended',
  task_late_result: 'late result of an earlier attempt',
  task_unreachable: 'task out of reach',
  task_reachable: 'task in reach again',
  task_residency: 'memory of a task moved',
  swap_decided: 'swap-out decided',
  swap_in_decided: 'swap-in decided',
  swap_failed: 'swap failed',
  swap_ordered: 'swap ordered by hand',
  task_became_noswap: 'task may not be swapped any more',
  growth_granted: 'growth granted',
  growth_refused: 'growth refused',
  reserve_breached: 'safety reserve breached',
  requeue_freeze: 'requeues frozen or released',
  broker_absence: 'connection to the broker lost or back',
  duplicate_node: 'two servers with one name',
  store_behind: 'store older than a node, or no longer',
  recovery: 'recovery begun or ended',
  attempt_quarantined: 'unknown attempt quarantined',
  attempt_settled: 'unknown attempt settled',
}

export function eventWords(kind: Kind): string {
  return (EVENT_WORDS as Readonly<Record<string, string>>)[kind] ?? kind.replaceAll('_', ' ')
}

/** Tasks that an event is about: of a decided swap-out those that leave, of any other its own. */
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

/** What says nothing to people: numbers by which others count. */
const LEFT_OUT: ReadonlySet<string> = new Set(['seq', 'generation', 'decision', 'closed_rounds'])
const MAX_FACTS = 8
const MAX_CHARACTERS = 60

/**
 * `GPU 0, 2, 9 879 MiB, after others have left`; ids by their names. What has no words yet is shown as it is.
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
  for: (value) => `for a ${spaced(value)}`,
  gpus: (value) =>
    Array.isArray(value) ? `GPU ${value.join(', ')}` : value === 1 ? '' : `${String(value)} GPUs`,
  missing: (value) =>
    listed(value, (one) => `${mib(numberOf(one['mib']))} missing on GPU ${String(one['gpu'])}`),
  mode: (value) => (value === 'shared' ? '' : spaced(value)),
  noswap: (value) => (value === 0 ? 'may be swapped' : 'noswap'),
  priority: (value) => `P${String(value)}`,
  residency: spaced,
  state: spaced,
  status: spaced,
  victims: (value, names) =>
    listed(
      value,
      (one) => `${names[String(one['id'])] ?? cut(String(one['id']))} leaves GPU ${String(one['gpu'])}`,
    ),
  when: (value) =>
    value === 'after_swap' ? 'once others have left' : value === 'now' ? 'at once' : spaced(value),
}

function otherWords(name: string, value: Value): string {
  if (typeof value === 'number' && name.endsWith('_mib')) return `${labelled(name, '_mib')}${mib(value)}`
  if (typeof value === 'number' && name.endsWith('_ms'))
    return `${labelled(name, '_ms')}${seconds(value / 1000)}`
  if (typeof value === 'number' && name.endsWith('_percent'))
    return `${labelled(name, '_percent')}${whole(value)} %`
  return `${name.replaceAll('_', ' ')} ${cut(typeof value === 'string' ? value : JSON.stringify(value))}`
}

/** `waited_ms` is `waited `; of `vram_mib` the unit says it. */
function labelled(name: string, unit: string): string {
  const label = name.slice(0, -unit.length).replaceAll('_', ' ')
  return label === 'vram' || label === 'demand' || label === '' ? '' : `${label} `
}

function listed(value: Value, wordsOf: (one: Readonly<Record<string, Value>>) => string): string {
  if (!Array.isArray(value)) return cut(JSON.stringify(value))
  return value.map((one) => wordsOf((one ?? {}) as Readonly<Record<string, Value>>)).join(', ')
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

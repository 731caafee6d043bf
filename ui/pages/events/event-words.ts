/** Events for people. Pure. */
import type { EventBody } from '../../../controller/api/schema/event.ts'

type Kind = EventBody['kind']

const WORDS: Readonly<Record<Kind, string>> = {
  config_changed: 'configuration changed',
  node_registered: 'node registered',
  node_status: 'node changed its status',
  node_config_changed: 'settings of a node changed',
  node_forgotten: 'node forgotten',
  node_drain: 'drain of a node',
  group_changed: 'group changed',
  group_deleted: 'group deleted',
  task_submitted: 'task submitted',
  task_updated: 'task changed',
  task_held: 'task held back',
  task_released: 'task released',
  task_placed: 'task placed',
  task_started: 'task started',
  task_returned: 'task back in the queue',
  task_finished: 'task ended',
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
  duplicate_node: 'two servers with one name',
}

export function eventWords(kind: Kind): string {
  return (WORDS as Readonly<Record<string, string>>)[kind] ?? kind.replaceAll('_', ' ')
}

const kindsWith = (...parts: readonly string[]): string =>
  Object.keys(WORDS)
    .filter((kind) => parts.some((each) => kind.startsWith(each)))
    .join(',')

/** What one filters by: kinds that belong together, then each. */
export const EVENT_GROUPS: readonly { readonly name: string; readonly kinds: string }[] = [
  { name: 'tasks', kinds: kindsWith('task_') },
  { name: 'swaps', kinds: kindsWith('swap_', 'task_residency') },
  { name: 'nodes', kinds: kindsWith('node_', 'duplicate_node') },
  { name: 'configuration and groups', kinds: kindsWith('config_', 'group_') },
  ...Object.entries(WORDS).map(([kinds, name]) => ({ name, kinds })),
]

const SHOWN = 6
const TEXT_LIMIT = 60

/** `state completed, exit_code 0`: the first facts, each cut to what fits a line. */
export function factsOf(data: EventBody['data']): string {
  const facts = Object.entries(data).filter(([, value]) => value !== null)
  const shown = facts.slice(0, SHOWN).map(([name, value]) => `${name} ${cut(typeof value === 'string' ? value : JSON.stringify(value))}`)
  return facts.length > SHOWN ? `${shown.join(', ')}, …` : shown.join(', ')
}

function cut(text: string): string {
  return text.length > TEXT_LIMIT ? `${text.slice(0, TEXT_LIMIT)}…` : text
}

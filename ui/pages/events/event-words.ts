/** Kinds of events that belong together. Pure. */
import { EVENT_WORDS } from '../../format/events.ts'

const kindsWith = (...parts: readonly string[]): string =>
  Object.keys(EVENT_WORDS)
    .filter((kind) => parts.some((each) => kind.startsWith(each)))
    .join(',')

/** All that moves memory, as the option of the filter has it. */
export const SWAP_KINDS = kindsWith('swap_', 'task_residency')

/** What one filters by: kinds that belong together, then each. */
export const EVENT_GROUPS: readonly { readonly name: string; readonly kinds: string }[] = [
  { name: 'tasks', kinds: kindsWith('task_') },
  { name: 'swaps', kinds: SWAP_KINDS },
  { name: 'nodes', kinds: kindsWith('node_', 'duplicate_node') },
  { name: 'configuration and groups', kinds: kindsWith('config_', 'group_') },
  ...Object.entries(EVENT_WORDS).map(([kinds, name]) => ({ name, kinds })),
]

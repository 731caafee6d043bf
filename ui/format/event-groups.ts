/** Groups of event kinds. Pure. */
import { EVENT_WORDS } from './events.ts'

const kindsWith = (...parts: readonly string[]): string =>
  Object.keys(EVENT_WORDS)
    .filter((kind) => parts.some((each) => kind.startsWith(each)))
    .join(',')

/** All kinds that concern swapping, as the filter option has them. */
export const SWAP_KINDS = kindsWith('swap_', 'task_residency')

/** Filter options: groups of kinds, then each kind. */
export const EVENT_GROUPS: readonly { readonly name: string; readonly kinds: string }[] = [
  { name: 'tasks', kinds: kindsWith('task_') },
  { name: 'swaps', kinds: SWAP_KINDS },
  { name: 'nodes', kinds: kindsWith('node_', 'duplicate_node') },
  { name: 'configuration and groups', kinds: kindsWith('config_', 'group_') },
  ...Object.entries(EVENT_WORDS).map(([kinds, name]) => ({ name, kinds })),
]

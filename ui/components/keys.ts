/** The keys of all pages. */
export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['Ctrl K, ⌘ K', 'Search everything, or run an action'],
  ['/', 'Search tasks and nodes'],
  ['?', 'These keys'],
  ['g d', 'Dashboard'],
  ['g t', 'Tasks'],
  ['g n', 'Nodes'],
  ['g g', 'Groups'],
  ['g p', 'Planner'],
  ['g m', 'Simulator'],
  ['g e', 'Events'],
  ['g s', 'Settings'],
  ['g x, g f', 'In a simulator session: the exercise, the faults'],
  ['← →', 'In a focused chart: previous point, next point'],
  ['← → ↑ ↓', 'In the map of GPUs: the GPU next to it'],
  ['Esc', 'Close the open dialog or menu'],
]

/** The keys of all pages. */
export const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['Ctrl K, ⌘ K', 'Search everything, or run an action'],
  ['/', 'Search tasks and nodes'],
  ['?', 'Show keyboard shortcuts'],
  ['g d', 'Dashboard'],
  ['g t', 'Tasks'],
  ['g n', 'Nodes'],
  ['g g', 'Groups'],
  ['g p', 'Planner'],
  ['g m', 'Simulator'],
  ['g e', 'Events'],
  ['g s', 'Settings'],
  ['g x, g f', 'In a simulator session: Exercise, Faults'],
  ['← →', 'In a focused chart: move to the previous or next point'],
  ['← → ↑ ↓', 'In the GPU map: select the adjacent GPU'],
  ['Esc', 'Close the open dialog or menu'],
]

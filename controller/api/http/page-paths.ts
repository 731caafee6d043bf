/**
 * Paths below `/` at which the page stands: it reads its address itself (ui/app.tsx). All else that is no
 * file is a problem like any other.
 */
export const PAGE_PATHS = [
  '/tasks',
  '/tasks/*',
  '/nodes',
  '/nodes/*',
  '/groups',
  '/groups/*',
  '/events',
  '/recovery',
  '/search',
  '/settings',
  '/planner',
  '/planner/*',
  '/simulator',
  '/simulator/*',
  '/glossary',
] as const

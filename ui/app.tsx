/**
 * The routes. The controller serves the same file for each of these paths
 * (controller/api/http/page-paths.ts).
 */
import { Route, Router } from '@solidjs/router'
import { onCleanup, type JSX } from 'solid-js'
import { lazyPage } from './components/lazy-page.tsx'
import { LiveLayout } from './components/live-layout.tsx'
import { Dashboard } from './pages/dashboard/dashboard.tsx'
import { Tasks } from './pages/tasks/tasks.tsx'

const Events = lazyPage(() => import('./pages/events/events.tsx'))
const Glossary = lazyPage(() => import('./pages/glossary.tsx'))
const Groups = lazyPage(() => import('./pages/groups/groups.tsx'))
const Settings = lazyPage(() => import('./pages/settings/settings.tsx'))
const Task = lazyPage(() => import('./pages/tasks/task.tsx'))
const Nodes = lazyPage(() => import('./pages/nodes/nodes.tsx'))
const Node = lazyPage(() => import('./pages/nodes/node.tsx'))
const Recovery = lazyPage(() => import('./pages/recovery/recovery.tsx'))
const Owners = lazyPage(() => import('./pages/owners/owners.tsx'))
const Simulator = lazyPage(() => import('./pages/simulator/simulator.tsx'))
const SessionLayout = lazyPage(() => import('./pages/simulator/session-layout.tsx'))
const Exercise = lazyPage(() => import('./pages/simulator/exercise.tsx'))
const Instructor = lazyPage(() => import('./pages/simulator/instructor.tsx'))
const Planner = lazyPage(() => import('./pages/planner/planner.tsx'))
const Sweep = lazyPage(() => import('./pages/planner/sweep.tsx'))
const Search = lazyPage(() => import('./pages/search/search.tsx'))
/** Only the development server has it. */
const Design = import.meta.env.DEV ? lazyPage(() => import('./pages/design/design.tsx')) : null
const NotFound = lazyPage(() => import('./pages/not-found.tsx'))

/**
 * Fetched after the first page is shown, so that they open at once, also while the controller is unreachable.
 */
const LATER = [
  Nodes,
  Node,
  Task,
  Groups,
  Events,
  Settings,
  Planner,
  Sweep,
  Simulator,
  SessionLayout,
  Exercise,
  Instructor,
  Owners,
  Recovery,
  Glossary,
  Search,
  NotFound,
]
const LATER_AFTER_MS = 5_000

export function App(): JSX.Element {
  const timer = setTimeout(() => void fetchLater(), LATER_AFTER_MS)
  onCleanup(() => clearTimeout(timer))
  return (
    <Router>
      <Route path="/simulator/:simulation" component={SessionLayout}>
        <ClusterPages />
        <Route path="/exercise" component={Exercise} />
        <Route path="/instructor" component={Instructor} />
        <Route path="*" component={NotFound} />
      </Route>
      <Route component={LiveLayout}>
        <ClusterPages />
        <Route path="/planner" component={Planner} />
        <Route path="/planner/:id" component={Sweep} />
        <Route path="/simulator" component={Simulator} />
        {Design === null ? null : <Route path="/design" component={Design} />}
        <Route path="*" component={NotFound} />
      </Route>
    </Router>
  )
}

/** Pages of a cluster: the live one, and each session under its own address. */
function ClusterPages(): JSX.Element {
  return (
    <>
      <Route path="/" component={Dashboard} />
      <Route path="/groups" component={Groups} />
      <Route path="/events" component={Events} />
      <Route path="/glossary" component={Glossary} />
      <Route path="/owners" component={Owners} />
      <Route path="/recovery" component={Recovery} />
      <Route path="/search" component={Search} />
      <Route path="/settings" component={Settings} />
      <Route path="/tasks" component={Tasks} />
      <Route path="/tasks/:id" component={Task} />
      <Route path="/nodes" component={Nodes} />
      <Route path="/nodes/:id" component={Node} />
    </>
  )
}

/** Fetches one after the other. A failed page is fetched again when it is opened. */
async function fetchLater(): Promise<void> {
  for (const page of LATER) await page.preload().catch(() => {})
}

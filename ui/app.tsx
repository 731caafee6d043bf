/** Which page stands where. The controller serves the same file for each of these paths (controller/api/page-paths.ts). */
import { Route, Router } from '@solidjs/router'
import { lazy, type JSX } from 'solid-js'
import { Shell } from './components/shell.tsx'
import { Dashboard } from './pages/dashboard/dashboard.tsx'
import { ClusterProvider } from './state/cluster.tsx'

const Settings = lazy(() => import('./pages/settings/settings.tsx'))
const NotFound = lazy(() => import('./pages/not-found.tsx'))

export function App(): JSX.Element {
  return (
    <Router
      root={(props) => (
        <ClusterProvider>
          <Shell>{props.children}</Shell>
        </ClusterProvider>
      )}
    >
      <Route path="/" component={Dashboard} />
      <Route path="/settings" component={Settings} />
      <Route path="*" component={NotFound} />
    </Router>
  )
}

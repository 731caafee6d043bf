/** Entries that are complete in the browser: pages, groups, settings and actions. */
import { useQuery } from '@tanstack/solid-query'
import { createMemo } from 'solid-js'
import { queryText } from '../../api/query-text.ts'
import { fieldsOf, titleOf, type OpenApi } from '../../format/config-fields.ts'
import { useCluster } from '../../state/cluster.tsx'
import { chooseTheme } from '../../state/theme.ts'
import { chooseZone } from '../../state/zone.ts'
import type { Entry } from './entries.ts'

const MORE_PAGES = [
  { path: '/glossary', name: 'Glossary' },
  { path: '/recovery', name: 'Recovery' },
]

export function useKnown(
  pages: () => readonly { readonly path: string; readonly name: string }[],
  isLive: boolean,
): () => readonly Entry[] {
  const { api } = useCluster()
  const groups = useQuery(() => ({
    queryKey: ['groups', 'of the palette'],
    queryFn: ({ signal }: { signal: AbortSignal }) =>
      api.get<{ readonly items: readonly { readonly id: string }[] }>('/groups', {}, signal),
  }))
  const openApi = useQuery(() => ({
    queryKey: ['openapi'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<OpenApi>('/openapi.json', {}, signal),
    staleTime: Infinity,
  }))
  const fields = createMemo(() => (openApi.data === undefined ? [] : fieldsOf(openApi.data)))
  return () => [
    ...actionsOf(isLive),
    ...[...pages(), ...MORE_PAGES].map(({ path, name }) => ({ kind: 'Page' as const, name, go: path })),
    ...(groups.data?.items ?? []).map(({ id }) => ({
      kind: 'Group' as const,
      name: id,
      detail: 'tasks of this group',
      go: `/tasks${queryText({ tab: 'all', group: id })}`,
    })),
    ...fields().map(({ name }) => ({
      kind: 'Setting' as const,
      name: titleOf(name) ?? name,
      also: name,
      detail: name,
      go: `/settings${queryText({ field: name })}`,
    })),
  ]
}

function actionsOf(isLive: boolean): readonly Entry[] {
  const action = (name: string, go: Entry['go']): Entry => ({ kind: 'Action', name, go })
  return [
    action('Submit task', '/tasks?submit=1'),
    action('New group', '/groups?new=1'),
    action('Show failed tasks', '/tasks?tab=failed'),
    action('Show nodes that need attention', '/#trouble'),
    ...(isLive ? [action('Plan overcommit for this cluster', '/planner?source=live')] : []),
    action('Theme: light', () => chooseTheme('light')),
    action('Theme: dark', () => chooseTheme('dark')),
    action('Theme: system', () => chooseTheme('system')),
    action('Times: local', () => chooseZone('local')),
    action('Times: UTC', () => chooseZone('utc')),
  ]
}

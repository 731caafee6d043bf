/** Names that the filters suggest while one types. */
import { useQuery } from '@tanstack/solid-query'
import { For, type JSX } from 'solid-js'
import type { NodePage } from '../../../controller/api/nodes/schema.ts'
import type { OwnerListBody } from '../../../controller/api/owners/schema.ts'
import { useCluster } from '../../state/cluster.tsx'
import type { TaskListQuery } from './task-filter.ts'

const SHOWN = 20
const STALE_MS = 30_000

export function NameOptions(props: { readonly query: TaskListQuery }): JSX.Element {
  const { api } = useCluster()
  const useNames = (
    subject: string,
    text: () => string,
    names: (text: string) => Promise<readonly string[]>,
  ) =>
    useQuery(() => ({
      queryKey: ['names', subject, text()],
      queryFn: () => names(text()),
      staleTime: STALE_MS,
    }))
  const part = (text: string) => (text === '' ? {} : { q: text })
  const nodes = useNames(
    'node',
    () => props.query.node ?? '',
    async (text) =>
      (await api.get<NodePage>('/nodes', { ...part(text), sort: 'name', limit: SHOWN })).items.map(
        ({ name }) => name,
      ),
  )
  const owners = useNames(
    'owner',
    () => props.query.owner ?? '',
    async (text) =>
      (await api.get<OwnerListBody>('/owners', { ...part(text), limit: SHOWN })).items.flatMap(
        ({ owner }) => owner ?? [],
      ),
  )
  const groups = useNames(
    'group',
    () => '',
    async () =>
      (await api.get<{ readonly items: readonly { readonly id: string }[] }>('/groups')).items.map(
        ({ id }) => id,
      ),
  )
  return (
    <>
      <Options id="names-of-node" names={nodes.data} />
      <Options id="names-of-owner" names={owners.data} />
      <Options id="names-of-group" names={groups.data} />
    </>
  )
}

function Options(props: { readonly id: string; readonly names: readonly string[] | undefined }): JSX.Element {
  return (
    <datalist id={props.id}>
      <For each={props.names ?? []}>{(name) => <option value={name} />}</For>
    </datalist>
  )
}

/** Content that comes from the GPU server of a task, or the reason why the server cannot be reached. */
import { useQuery } from '@tanstack/solid-query'
import { Show, type JSX } from 'solid-js'
import type { CapabilitiesBody } from '../../../controller/api/auth/capability-schema.ts'
import type { TaskBody } from '../../../controller/api/tasks/schema.ts'
import { useWorld } from '../../api/world.ts'
import { EmptyState } from '../../design/empty-state.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { whyNotOwn } from './task-rights.ts'

export interface OnHostProps {
  readonly task: TaskBody
  readonly what: 'output' | 'files' | 'processes'
  readonly children: JSX.Element
}

export function OnHost(props: OnHostProps): JSX.Element {
  const whyNot = useWhyNoHost(
    () => props.task,
    () => props.what,
  )
  return (
    <Show
      when={whyNot() === null}
      fallback={<Show when={whyNot()}>{(reason) => <EmptyState icon="server-off" title={reason()} />}</Show>}
    >
      {props.children}
    </Show>
  )
}

/** @returns a reason, an empty text while it is unknown, or null */
function useWhyNoHost(task: () => TaskBody, what: () => OnHostProps['what']): () => string | null {
  const { api, session } = useCluster()
  const { mode } = useWorld()
  const capabilities = useQuery(() => ({
    queryKey: ['capabilities'],
    queryFn: ({ signal }: { signal: AbortSignal }) => api.get<CapabilitiesBody>('/capabilities', {}, signal),
    enabled: mode === 'live',
    staleTime: Infinity,
  }))
  return () => {
    if (mode !== 'live' || capabilities.data?.fleet === 'simulated')
      return `The fleet is simulated: its tasks have no ${what()}.`
    if (capabilities.data === undefined) return capabilities.error === null ? '' : capabilities.error.message
    if (!capabilities.data.features.task_output) return 'This controller is not connected to GPU servers.'
    const { attempt, state } = task()
    if (attempt === 0)
      return state === 'pending' || state === 'assigned'
        ? `The task has not started yet and has no ${what()}.`
        : `The task never started and has no ${what()}.`
    return whyNotOwn(session, task())
  }
}

/** Tasks, nodes and owners that the controller finds for a text, asked while it is typed. */
import { createEffect, createSignal, on, onCleanup } from 'solid-js'
import type { OwnerListBody } from '../../../controller/api/owners/schema.ts'
import { pathSegment } from '../../api/client.ts'
import { queryText } from '../../api/query-text.ts'
import { statusWords } from '../../format/nodes.ts'
import { stateWords } from '../../format/tasks.ts'
import { find } from '../../api/find.ts'
import { useCluster } from '../../state/cluster.tsx'
import type { Entry } from './entries.ts'
import { errorText } from '../../api/error-text.ts'

/** Pause in typing after which the controller is asked. */
const TYPING_MS = 150
const OWNERS_SHOWN = 5

export function useFound(text: () => string) {
  const { api } = useCluster()
  const [entries, setEntries] = createSignal<readonly Entry[]>([])
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isBusy, setBusy] = createSignal(false)
  let timer: ReturnType<typeof setTimeout> | undefined
  let asked = new AbortController()
  const ask = async (wanted: string): Promise<void> => {
    const { signal } = asked
    try {
      const [{ tasks, nodes }, owners] = await Promise.all([
        find(api, wanted, signal),
        api.get<OwnerListBody>('/owners', { q: wanted, limit: OWNERS_SHOWN }, signal),
      ])
      setEntries([
        ...tasks.map((task) => ({
          kind: 'Task' as const,
          name: task.name,
          also: task.id,
          detail: stateWords(task),
          go: `/tasks/${pathSegment(task.id)}`,
        })),
        ...nodes.map((node) => ({
          kind: 'Node' as const,
          name: node.name,
          also: node.node_id,
          detail: statusWords(node),
          go: `/nodes/${pathSegment(node.node_id)}`,
        })),
        ...owners.items.flatMap(({ owner, tasks: { running, pending } }) =>
          owner === null
            ? []
            : [
                {
                  kind: 'Owner' as const,
                  name: owner,
                  detail: `${running} running, ${pending} pending`,
                  go: `/tasks${queryText({ tab: 'all', owner })}`,
                },
              ],
        ),
      ])
      setProblem(null)
    } catch (error) {
      if (signal.aborted) return
      setEntries([])
      setProblem(errorText(error))
    }
    setBusy(false)
  }
  const stop = (): void => {
    clearTimeout(timer)
    asked.abort()
    asked = new AbortController()
  }
  createEffect(
    on(
      () => text().trim(),
      (wanted) => {
        stop()
        setBusy(wanted !== '')
        if (wanted === '') setEntries([])
        else timer = setTimeout(() => void ask(wanted), TYPING_MS)
      },
    ),
  )
  onCleanup(stop)
  return { entries, problem, isBusy }
}

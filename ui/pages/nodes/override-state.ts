/** The entered overrides of a node, their impact, and the state of the node when editing started. */
import { useQueryClient } from '@tanstack/solid-query'
import { createSignal, type Accessor } from 'solid-js'
import type { ChangedNodeBody, NodeBody } from '../../../controller/api/nodes/schema.ts'
import { pathSegment, Refused, type ApiResponse } from '../../api/client.ts'
import { toast } from '../../design/toast.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { changeOf, draftOf, settingsWords, type OverrideDraft } from './override-draft.ts'
import { errorText } from '../../api/error-text.ts'

/** The node with the ETag of its settings. */
export interface TaggedNode {
  readonly node: NodeBody
  readonly etag: string | null
}

export function createOverride(at: Accessor<TaggedNode>) {
  const { api } = useCluster()
  const queries = useQueryClient()
  const [typed, setTyped] = createSignal<OverrideDraft | null>(null)
  /** The state when editing started. */
  const [base, setBase] = createSignal<TaggedNode | null>(null)
  const [plan, setPlan] = createSignal<ChangedNodeBody | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [isTried, setTried] = createSignal(false)
  const [done, setDone] = createSignal('')

  const draft = (): OverrideDraft => typed() ?? draftOf(at().node)
  const asked = () => changeOf(draft())
  const problemOf = (field: 'percentProblem' | 'reserveProblem'): string => {
    const result = asked()
    return isTried() && !result.ok ? (result[field] ?? '') : ''
  }
  const conflict = (): TaggedNode | null => {
    const begun = base()
    return begun === null || begun.etag === at().etag ? null : begun
  }
  const rebase = (on: TaggedNode | null): void => {
    setBase(on)
    setPlan(null)
  }
  const type = (part: Partial<OverrideDraft>): void => {
    rebase(base() ?? at())
    setTyped({ ...draft(), ...part })
    setDone('')
  }
  const reset = (): void => {
    setTyped(null)
    rebase(null)
    setProblem(null)
    setTried(false)
  }
  const patch = async (isDryRun: boolean): Promise<ApiResponse<ChangedNodeBody>> => {
    const result = asked()
    if (!result.ok) throw new Error('One of the entered values is invalid.')
    const ifMatch = (base() ?? at()).etag
    const sending = { body: result.change, ifMatch, query: isDryRun ? { dry_run: true } : {} }
    return api.send<ChangedNodeBody>('PUT', `/nodes/${pathSegment(at().node.node_id)}/config`, sending)
  }
  const makePlan = async (): Promise<void> => {
    setTried(true)
    setProblem(null)
    rebase(base() ?? at())
    if (!asked().ok) return
    try {
      setPlan((await patch(true)).body)
    } catch (error) {
      await refused(error)
    }
  }
  const refused = async (error: unknown): Promise<void> => {
    // Reads the current settings; the conflict notice shows them.
    if (isConflict(error)) await queries.invalidateQueries({ queryKey: ['nodes'] })
    else setProblem(errorText(error))
  }
  /** Refused if the settings have changed since. */
  const undo = async (before: NodeBody, etag: string | null): Promise<string> => {
    const { overcommit_vram_percent, safety_reserve_mib } = before
    const { body } = await api.send<NodeBody>('PUT', `/nodes/${pathSegment(before.node_id)}/config`, {
      body: { overcommit_vram_percent, safety_reserve_mib },
      ifMatch: etag,
    })
    await queries.invalidateQueries({ queryKey: ['nodes'] })
    setDone('')
    return `Undone: ${body.name}: ${settingsWords(body)}.`
  }
  const apply = async (): Promise<void> => {
    try {
      const before = at().node
      const { body: node, etag } = await patch(false)
      await queries.invalidateQueries({ queryKey: ['nodes'] })
      reset()
      setDone(`Applied: ${settingsWords(node)}.`)
      toast({ text: `${node.name}: ${settingsWords(node)}.`, undo: () => undo(before, etag) })
    } catch (error) {
      setPlan(null)
      await refused(error)
      if (!isConflict(error)) throw error
    }
  }
  return { typed, draft, type, reset, plan, makePlan, apply, rebase, conflict, problem, problemOf, done }
}

function isConflict(error: unknown): boolean {
  return error instanceof Refused && error.status === 412
}

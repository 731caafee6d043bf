/**
 * A change of the configuration: entered values, the revision they are based on, the plan, and errors of the
 * controller.
 */
import { useQueryClient } from '@tanstack/solid-query'
import { createMemo, createSignal } from 'solid-js'
import type { ChangedConfigBody, ConfigBody } from '../../../controller/api/config/schema.ts'
import { Refused, type ApiResponse } from '../../api/client.ts'
import { toast } from '../../design/toast.tsx'
import { useCluster } from '../../state/cluster.tsx'
import { differences, readField, textOf, type FieldInfo, type FieldName } from '../../format/config-fields.ts'
import type { Plan } from './plan-panel.tsx'

export interface ChangeProps {
  readonly fields: readonly FieldInfo[]
  /** The current configuration. */
  readonly live: ConfigBody
  readonly etag: string | null
}

export function createChange(props: ChangeProps) {
  const { api } = useCluster()
  const queries = useQueryClient()
  /** Entered values that are not applied yet, by field. */
  const [typed, setTyped] = createSignal<Readonly<Partial<Record<FieldName, string>>>>({})
  /**
   * The configuration when editing started: another change is a conflict only if there are entered values.
   */
  const [base, setBase] = createSignal<{ readonly config: ConfigBody; readonly etag: string | null } | null>(
    null,
  )
  const [plan, setPlan] = createSignal<Plan | null>(null)
  const [problem, setProblem] = createSignal<Error | null>(null)
  const [isBusy, setBusy] = createSignal(false)

  const against = () => base() ?? { config: props.live, etag: props.etag }
  const isConflict = (): boolean => base() !== null && base()?.config.revision !== props.live.revision
  const textFor = (field: FieldInfo): string => typed()[field.name] ?? textOf(props.live[field.name])
  const reads = createMemo(() =>
    props.fields.map((field) => ({ field, read: readField(field, textFor(field)) })),
  )
  const wanted = createMemo(() =>
    Object.fromEntries(
      reads().flatMap(({ field, read }) =>
        read.ok && typed()[field.name] !== undefined ? [[field.name, read.value]] : [],
      ),
    ),
  )
  const changes = createMemo(() => differences(against().config, wanted()))
  const problemOf = (field: FieldInfo): string | null => {
    const read = readField(field, textFor(field))
    return read.ok ? refusalOf(problem(), field.name) : read.why
  }
  const isValid = (): boolean => reads().every(({ read }) => read.ok)

  const type = (name: FieldName, text: string): void => {
    if (base() === null) setBase({ config: props.live, etag: props.etag })
    setTyped({ ...typed(), [name]: text })
    setPlan(null)
    setProblem(null)
  }
  const discard = (): void => {
    setTyped({})
    setBase(null)
    setPlan(null)
    setProblem(null)
  }
  const send = async (isDryRun: boolean): Promise<ApiResponse<ChangedConfigBody> | null> => {
    setBusy(true)
    setProblem(null)
    try {
      const body = Object.fromEntries(changes().map(({ name, after }) => [name, after]))
      const query = isDryRun ? { dry_run: true } : {}
      return await api.send<ChangedConfigBody>('PUT', '/config', { query, body, ifMatch: against().etag })
    } catch (error) {
      setProblem(error as Error)
      if (error instanceof Refused && error.status === 412)
        await queries.invalidateQueries({ queryKey: ['config'] })
      return null
    } finally {
      setBusy(false)
    }
  }
  const makePlan = async (): Promise<void> => {
    if (!isValid() || changes().length === 0) return
    const answer = await send(true)
    const impact = answer?.body.impact
    if (impact !== undefined) setPlan({ title: 'Impact of the change', changes: changes(), impact })
  }
  const apply = async (): Promise<void> => {
    const before = Object.fromEntries(changes().map((change) => [change.name, change.before]))
    const answer = await send(false)
    if (answer === null) return
    discard()
    await queries.invalidateQueries({ queryKey: ['config'] })
    toast({
      text: `Applied, revision ${answer.body.revision}.`,
      // Refused if the configuration has changed since.
      undo: async () => {
        const { body } = await api.send<ConfigBody>('PUT', '/config', { body: before, ifMatch: answer.etag })
        await queries.invalidateQueries({ queryKey: ['config'] })
        return `Undone, revision ${body.revision}.`
      },
    })
  }
  /** Keeps the entered values, based on the current configuration. */
  const rebase = (): void => {
    setBase({ config: props.live, etag: props.etag })
    setPlan(null)
    setProblem(null)
  }
  return {
    typed,
    plan,
    problem,
    isBusy,
    against,
    isConflict,
    textFor,
    problemOf,
    isValid,
    changes,
    type,
    forget: discard,
    makePlan,
    apply,
    rebase,
    dropPlan: () => setPlan(null),
  }
}

function refusalOf(error: Error | null, name: string): string | null {
  return error instanceof Refused ? error.detailOf(`/${name}`) : null
}

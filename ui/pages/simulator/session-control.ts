/**
 * Controls one session: its state, polled every second, and the commands for its time. All requests go below
 * the address of the session.
 */
import { createContext, createSignal, onCleanup, useContext, type Accessor } from 'solid-js'
import type { SessionBody } from '../../../controller/api/simulations/session-schema.ts'
import type { SimulationBody } from '../../../controller/api/simulations/schema.ts'
import { ApiClient, pathSegment, Refused } from '../../api/client.ts'
import { errorText } from '../../api/error-text.ts'

const POLL_EVERY_MS = 1_000

export interface SessionControl {
  readonly id: string
  /** Requests below `/api/v1/simulations/<id>`. */
  readonly api: ApiClient
  /** null before the first response. */
  readonly record: Accessor<SimulationBody | null>
  readonly view: Accessor<SessionBody | null>
  /** The last error. */
  readonly problem: Accessor<string | null>
  readonly isBusy: Accessor<boolean>
  /** Number of jumps in time; data displayed before a jump is obsolete. */
  readonly jumps: Accessor<number>
  /** Sends a command that returns the new state. */
  command(path: string, body?: unknown): Promise<void>
  /** Sends another change of the session. @throws the errors of the client */
  send<T>(path: string, body?: unknown): Promise<T>
  refresh(): Promise<void>
  /** Ends an exercise, which closes its session. @throws the errors of the client */
  finish(): Promise<void>
}

export const SessionControlContext = createContext<SessionControl>()

export function useSessionControl(): SessionControl {
  const control = useContext(SessionControlContext)
  if (control === undefined) throw new Error('this page is not inside a session')
  return control
}

export function sessionBase(id: string): string {
  return `/api/v1/simulations/${pathSegment(id)}`
}

export function createSessionControl(id: string): SessionControl {
  const api = new ApiClient(sessionBase(id))
  const [record, setRecord] = createSignal<SimulationBody | null>(null)
  const [view, setView] = createSignal<SessionBody | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [busy, setBusy] = createSignal(0)
  const [jumps, setJumps] = createSignal(0)
  /** Incremented by every command, so that an older response is not shown after it. */
  let commandCount = 0
  let isEnding = false
  const show = (next: SessionBody): void => {
    const before = view()
    setView(next)
    if (before !== null && next.events < before.events) setJumps((count) => count + 1)
  }
  const refresh = async (): Promise<void> => {
    const startedAt = commandCount
    try {
      if (record() === null) setRecord(await api.get<SimulationBody>(''))
      if (record()?.state !== 'running') return
      const next = await api.get<SessionBody>('/session')
      if (startedAt === commandCount) show(next)
    } catch (error) {
      if (record() === null) setProblem(errorText(error))
      else if (error instanceof Refused)
        await api.get<SimulationBody>('').then(setRecord, (why: unknown) => setProblem(errorText(why)))
    }
  }
  const send = async <T>(path: string, body?: unknown): Promise<T> => {
    commandCount += 1
    setBusy((count) => count + 1)
    try {
      return (await api.send<T>('POST', path, body === undefined ? {} : { body })).body
    } finally {
      commandCount += 1
      setBusy((count) => count - 1)
    }
  }
  void refresh()
  const timer = setInterval(
    () => document.visibilityState === 'visible' && !isEnding && void refresh(),
    POLL_EVERY_MS,
  )
  onCleanup(() => clearInterval(timer))
  return {
    id,
    api,
    record,
    view,
    problem,
    isBusy: () => busy() > 0,
    jumps,
    send,
    refresh,
    async finish() {
      isEnding = true
      try {
        await send('/finish')
        setRecord(await api.get<SimulationBody>(''))
      } finally {
        isEnding = false
      }
    },
    async command(path, body) {
      setProblem(null)
      try {
        const before = view()?.events ?? 0
        show(await send<SessionBody>(path, body))
        // Events of a step arrive with the stream; charts do not.
        if ((view()?.events ?? 0) >= before && path !== '/speed') setJumps((count) => count + 1)
      } catch (error) {
        setProblem(errorText(error))
        await refresh()
      }
    },
  }
}

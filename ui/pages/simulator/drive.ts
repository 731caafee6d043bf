/**
 * One session as it is driven: where it stands, asked every second, and the commands that move it. All of it
 * goes below the session's own address.
 */
import { createContext, createSignal, onCleanup, useContext, type Accessor } from 'solid-js'
import type { SessionBody } from '../../../controller/api/schema/session.ts'
import type { SimulationBody } from '../../../controller/api/schema/simulation.ts'
import { ApiClient, part, Refused } from '../../api/client.ts'

const ASK_EVERY_MS = 1_000

export interface Drive {
  readonly id: string
  /** Requests below `/api/v1/simulations/<id>`. */
  readonly api: ApiClient
  /** null before the first answer. */
  readonly record: Accessor<SimulationBody | null>
  readonly view: Accessor<SessionBody | null>
  /** What was last refused, in words. */
  readonly problem: Accessor<string | null>
  readonly isBusy: Accessor<boolean>
  /** Counts how often it has gone somewhere else, back or forth: what was shown before is not so any more. */
  readonly jumps: Accessor<number>
  /** A command that answers where it stands then. */
  command(path: string, body?: unknown): Promise<void>
  /** Something else that changes it. @throws what the client throws */
  send<T>(path: string, body?: unknown): Promise<T>
  ask(): Promise<void>
  /** Brings an exercise to its end: it stands nowhere any more then. @throws what the client throws */
  finish(): Promise<void>
}

export const DriveContext = createContext<Drive>()

export function useDrive(): Drive {
  const drive = useContext(DriveContext)
  if (drive === undefined) throw new Error('a page of a session stands outside of one')
  return drive
}

export function sessionBase(id: string): string {
  return `/api/v1/simulations/${part(id)}`
}

export function createDrive(id: string): Drive {
  const api = new ApiClient(sessionBase(id))
  const [record, setRecord] = createSignal<SimulationBody | null>(null)
  const [view, setView] = createSignal<SessionBody | null>(null)
  const [problem, setProblem] = createSignal<string | null>(null)
  const [busy, setBusy] = createSignal(0)
  const [jumps, setJumps] = createSignal(0)
  /** Changes with every command, so that an answer that was asked for before it is not shown after it. */
  let turn = 0
  let isEnding = false
  const show = (next: SessionBody): void => {
    const before = view()
    setView(next)
    if (before !== null && next.events < before.events) setJumps((count) => count + 1)
  }
  const ask = async (): Promise<void> => {
    const asked = turn
    try {
      if (record() === null) setRecord(await api.get<SimulationBody>(''))
      if (record()?.state !== 'running') return
      const next = await api.get<SessionBody>('/session')
      if (asked === turn) show(next)
    } catch (error) {
      if (record() === null) setProblem(wordsOf(error))
      else if (error instanceof Refused)
        await api.get<SimulationBody>('').then(setRecord, (why: unknown) => setProblem(wordsOf(why)))
    }
  }
  const send = async <T>(path: string, body?: unknown): Promise<T> => {
    turn += 1
    setBusy((count) => count + 1)
    try {
      return (await api.send<T>('POST', path, body === undefined ? {} : { body })).body
    } finally {
      turn += 1
      setBusy((count) => count - 1)
    }
  }
  void ask()
  const timer = setInterval(
    () => document.visibilityState === 'visible' && !isEnding && void ask(),
    ASK_EVERY_MS,
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
    ask,
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
        // Events of a step come with the stream; charts do not.
        if ((view()?.events ?? 0) >= before && path !== '/speed') setJumps((count) => count + 1)
      } catch (error) {
        setProblem(wordsOf(error))
        await ask()
      }
    },
  }
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

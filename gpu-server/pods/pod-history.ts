/**
 * What pods have done, in a file that outlives the agent: their swap marks, which nothing else keeps when the
 * operator ends, and how long they were idle when the agent ended.
 */
import type { SwapMark } from '../../protocol/agent-messages.ts'
import { latestMarks } from '../../protocol/latest-marks.ts'
import { MAX_COUNT } from '../../protocol/limits.ts'
import type { DurationMs } from '../../protocol/units.ts'
import { DurableFile } from './durable-file.ts'
import { keptPods } from './out-pods.ts'
import type { KeptPod, PodTask } from './pod-task.ts'

/** Use of a GPU is not seen while no agent runs: after a longer time every pod counts as just used. */
const MAX_AWAY_MS: DurationMs = 60_000

export interface PastPod extends KeptPod {
  readonly marks: readonly SwapMark[]
  /** When the agent ended; null: it was in use or swapped out, or the agent was killed. */
  readonly idle_ms: DurationMs | null
}

interface Content {
  readonly pods: readonly PastPod[]
  /** When the agent ended, by its clock; null: it runs, or was killed. */
  readonly ended_at: DurationMs | null
  /** The latest mark of each GPU and class. */
  readonly rounds: readonly SwapMark[]
}

export class PodHistory {
  /** As the agent before has left them. */
  readonly pods: readonly PastPod[]
  readonly #file: DurableFile
  #rounds: readonly SwapMark[]

  /** @param folder exists. @throws StateFault */
  constructor(folder: string, now: DurationMs) {
    this.#file = new DurableFile(folder, 'pod-history.json')
    const { pods, ended_at: endedAt, rounds } = this.#file.read(contentOf) ?? NOTHING
    this.#rounds = rounds
    const isRecent = endedAt !== null && endedAt <= now && now - endedAt <= MAX_AWAY_MS
    this.pods = isRecent ? pods : pods.map((pod) => ({ ...pod, idle_ms: null }))
    // If this agent is killed, the next one must not take that for its end.
    if (endedAt !== null) this.#write(this.pods.map(withoutIdle), null)
  }

  /** The latest mark of each GPU and class, also of pods that have ended. */
  get rounds(): readonly SwapMark[] {
    return this.#rounds
  }

  /** The agent runs. The marks are durable before this returns. */
  keepMarks(tasks: Iterable<PodTask>): void {
    const marked = [...tasks].filter(({ marks }) => marks.length > 0)
    this.#rounds = latestMarks([...this.#rounds, ...marked.flatMap(({ marks }) => marks)])
    const pods = marked.map(({ facts, marks }) => ({ ...facts, marks, idle_ms: null }))
    this.#write(pods, null)
  }

  /** The agent ends. */
  keepAll(tasks: Iterable<PodTask>, now: DurationMs): void {
    const pods = [...tasks].map(({ facts, marks, isOut, wantsGpu, lastUseAt }) => {
      const idle_ms = isOut || wantsGpu ? null : Math.max(0, Math.floor(now - lastUseAt))
      return { ...facts, marks, idle_ms }
    })
    this.#write(pods, now)
  }

  #write(pods: readonly PastPod[], endedAt: DurationMs | null): void {
    const content: Content = { pods, ended_at: endedAt, rounds: this.#rounds }
    this.#file.write(content)
  }
}

const NOTHING: Content = { pods: [], ended_at: null, rounds: [] }

function withoutIdle(pod: PastPod): PastPod {
  return { ...pod, idle_ms: null }
}

function contentOf(content: unknown): Content {
  const { pods, ended_at: endedAt, rounds } = content as Content
  const found = keptPods<PastPod>(pods)
  const times = [endedAt, ...found.map(({ idle_ms: idleMs }) => idleMs)]
  const isTime = (ms: unknown): boolean =>
    ms === null || (typeof ms === 'number' && ms >= 0 && ms <= MAX_COUNT)
  const haveMarks = [rounds, ...found.map(({ marks }) => marks)].every(Array.isArray)
  if (!times.every(isTime) || !haveMarks) throw new Error('its content is not a history of pods')
  return { pods: found, ended_at: endedAt, rounds }
}

/**
 * List of swapped-out pods, in a file that outlives the agent: a stopped process does not show why it is
 * stopped.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { checkAgentAnswer } from '../../protocol/agent-messages.ts'
import { errorText } from '../../protocol/error-text.ts'
import { StateFault } from '../state-fault.ts'
import type { KeptPod } from './pod-task.ts'

export class OutPods {
  readonly #folder: string
  readonly #path: string
  readonly #pods = new Map<string, KeptPod>()

  /** @param folder exists. @throws StateFault */
  constructor(folder: string) {
    this.#folder = folder
    this.#path = join(folder, 'out-pods.json')
    try {
      for (const pod of kept(this.#path)) this.#pods.set(pod.pod, pod)
    } catch (error) {
      throw new StateFault(`${this.#path}: ${errorText(error)}`, { cause: error })
    }
  }

  all(): readonly KeptPod[] {
    return [...this.#pods.values()]
  }

  /** It is durable before this returns. */
  add(pod: KeptPod): void {
    this.#pods.set(pod.pod, pod)
    this.#write()
  }

  delete(pod: string): void {
    if (this.#pods.delete(pod)) this.#write()
  }

  #write(): void {
    const next = `${this.#path}.new`
    const fd = openSync(next, 'w', 0o600)
    try {
      writeSync(fd, JSON.stringify(this.all()))
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(next, this.#path)
    const folder = openSync(this.#folder, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  }
}

function kept(path: string): readonly KeptPod[] {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const found = JSON.parse(text) as readonly KeptPod[]
  const pods = found.map((pod) => ({ ...pod, order: 0, wanted: 'out' as const }))
  const fault = checkAgentAnswer({ pods })
  if (fault !== null) throw new Error(`its content${fault}`)
  return found
}

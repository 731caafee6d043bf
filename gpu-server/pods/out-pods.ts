/**
 * List of swapped-out pods, in a file that outlives the agent: a stopped process does not show why it is
 * stopped.
 */
import { checkAgentAnswer } from '../../protocol/agent-messages.ts'
import { DurableFile } from './durable-file.ts'
import type { KeptPod } from './pod-task.ts'

export class OutPods {
  readonly #file: DurableFile
  readonly #pods = new Map<string, KeptPod>()

  /** @param folder exists. @throws StateFault */
  constructor(folder: string) {
    this.#file = new DurableFile(folder, 'out-pods.json')
    for (const pod of this.#file.read(keptPods) ?? []) this.#pods.set(pod.pod, pod)
  }

  all(): readonly KeptPod[] {
    return [...this.#pods.values()]
  }

  /** As it was when it was swapped out. */
  find(pod: string): KeptPod | undefined {
    return this.#pods.get(pod)
  }

  /** It is durable before this returns. */
  add(pod: KeptPod): void {
    this.#pods.set(pod.pod, pod)
    this.#file.write(this.all())
  }

  delete(pod: string): void {
    if (this.#pods.delete(pod)) this.#file.write(this.all())
  }
}

/** Throws if an answer could not have these pods. */
export function keptPods<T extends KeptPod>(content: unknown): readonly T[] {
  const found = content as readonly T[]
  const pods = found.map((pod) => ({ ...pod, order: 0, wanted: 'out' as const }))
  const fault = checkAgentAnswer({ pods })
  if (fault !== null) throw new Error(`its content${fault}`)
  return found
}

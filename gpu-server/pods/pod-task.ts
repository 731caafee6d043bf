/**
 * A pod whose processes the kubelet started. This server stops and continues them by signals, and never ends
 * one.
 */
import { readFileSync } from 'node:fs'
import type { PodOrder, SwapMark } from '../../protocol/agent-messages.ts'
import type { DurationMs, Mib } from '../../protocol/units.ts'
import type { SwapOutcome } from '../core/device.ts'
import type { AcceleratedTask } from '../devices/accelerator.ts'
import { AttachedProcess } from '../devices/attached-process.ts'
import type { WatchedTask } from '../devices/socket-watch.ts'
import { startTimeOf } from '../guard/process-table.ts'
import type { ContainerProcesses } from './pod-cgroups.ts'

/** The facts about a pod that are needed to restore it. */
export type KeptPod = Pick<
  PodOrder,
  'pod' | 'containers' | 'gpus' | 'vram_mib' | 'wake_ports' | 'wake_on_request'
>

const POLL_MS = 5
const STILL_WITHIN_MS = 250
const STOP_TRIES = 20

export class PodTask implements AcceleratedTask, WatchedTask {
  readonly taskId: string
  readonly attempt = 1
  isOut = false
  isMoving = false
  wantsGpu = true
  /** It is out, and requests are what brings it back. */
  isWakeable = false
  lastUseAt: DurationMs
  order = 0
  outcome: SwapOutcome | null = null
  whyNot: string | null = null
  /** How the rounds of the operator count it. */
  marks: readonly SwapMark[] = []
  #facts: KeptPod
  readonly #cgroups: ContainerProcesses
  readonly #wait: (ms: DurationMs) => Promise<void>

  constructor(
    facts: KeptPod,
    now: DurationMs,
    cgroups: ContainerProcesses,
    wait: (ms: DurationMs) => Promise<void>,
  ) {
    this.taskId = facts.pod
    this.#facts = facts
    this.lastUseAt = now
    this.#cgroups = cgroups
    this.#wait = wait
  }

  get gpus(): readonly number[] {
    return this.#facts.gpus
  }

  get vramMib(): Mib {
    return this.#facts.vram_mib
  }

  get facts(): KeptPod {
    const { pod, containers, gpus, vram_mib, wake_ports, wake_on_request } = this.#facts
    return {
      ...{ pod, containers, gpus, vram_mib },
      ...(wake_ports === undefined ? {} : { wake_ports }),
      ...(wake_on_request === undefined ? {} : { wake_on_request }),
    }
  }

  /** The sockets of the pod that are watched. */
  get start(): WatchedTask['start'] {
    const { wake_ports: wakePorts = [] } = this.#facts
    return { wakePorts, wakeOnRequest: wakePorts.length > 0, isLease: false }
  }

  /** Its owner declares that nothing but a request has to bring it back. */
  get isDeclaredWakeable(): boolean {
    return this.#facts.wake_on_request === true
  }

  /** A container that starts again has another id. */
  update(facts: KeptPod): void {
    const gone = this.#facts.containers.filter((id) => !facts.containers.includes(id))
    this.#cgroups.forget(gone)
    this.#facts = facts
  }

  forget(): void {
    this.#cgroups.forget(this.#facts.containers)
  }

  processIds(): readonly number[] {
    return this.#cgroups.processesOf(this.#facts.containers)
  }

  /** Resolves when all its processes are stopped, those too that started meanwhile. */
  async suspend(): Promise<void> {
    for (let tries = 1; tries <= STOP_TRIES; tries += 1) {
      if (await this.#stops()) return
      // Between vfork and exec a process cannot stop before its child, which is stopped, continues.
      await this.resume()
      await this.#wait(POLL_MS * tries)
    }
    throw new Error('its processes cannot be stopped')
  }

  resume(): Promise<void> {
    for (const process of this.#processes()) process.resume()
    return Promise.resolve()
  }

  /** Returns the environment of each of its processes at its start. */
  environments(): readonly Readonly<Record<string, string>>[] {
    return this.processIds().map(environmentOf)
  }

  async #stops(): Promise<boolean> {
    for (let waited = 0; waited < STILL_WITHIN_MS; waited += POLL_MS) {
      const moving = this.#processes().filter((process) => !process.isStill)
      if (moving.length === 0) return true
      for (const process of moving) process.signal('SIGSTOP')
      await this.#wait(POLL_MS)
    }
    return false
  }

  #processes(): readonly AttachedProcess[] {
    return this.processIds().flatMap((pid) => {
      const startTime = startTimeOf(pid)
      if (startTime === null) return []
      const attached = new AttachedProcess({ key: { pid, startTime }, wait: this.#wait })
      return attached.isAlive ? [attached] : []
    })
  }
}

function environmentOf(pid: number): Readonly<Record<string, string>> {
  let text = ''
  try {
    text = readFileSync(`/proc/${pid}/environ`, 'utf8')
  } catch {
    // It has ended.
  }
  const pairs = text.split('\0').flatMap((pair) => {
    const end = pair.indexOf('=')
    return end > 0 ? [[pair.slice(0, end), pair.slice(end + 1)] as const] : []
  })
  return Object.fromEntries(pairs)
}

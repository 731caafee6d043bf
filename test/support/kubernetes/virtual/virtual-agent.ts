/**
 * The agent of a virtual node, as gpu-server/pods has it: it reports, obeys orders after a while, and what it
 * keeps outlives it: marks, and which pods are out.
 */
import type { AgentAnswer, AgentReport, PodReport, SwapMark } from '../../../../protocol/agent-messages.ts'
import { latestMarks } from '../../../../protocol/latest-marks.ts'
import type { Instant } from '../../../../protocol/units.ts'
import { timePasses } from '../../../../controller/ports/clock.ts'
import type { RandomStream } from '../../../../controller/ports/random.ts'
import type { VirtualClock } from '../../../../simulator/kernel/virtual-clock.ts'
import type { Container, VirtualNode } from './virtual-node.ts'
import { VirtualProcess } from './virtual-process.ts'

/** Sends a report to an operator. Resolves with null if it gets no answer. */
export type SendReport = (report: AgentReport, from: VirtualProcess) => Promise<AgentAnswer | null>

export interface KeptByAgent {
  readonly out: Set<string>
  readonly marks: Map<string, readonly SwapMark[]>
  rounds: readonly SwapMark[]
}

interface AgentTask {
  lastUseAt: Instant
  wantsGpu: boolean
  order: number
  outcome: PodReport['outcome']
  marks: readonly SwapMark[]
}

const SAMPLE_EVERY_MS = 1_000
const RETRY_MS = 1_000
const IDLE_AFTER_MS = 5_000
const CALM_MS = 1_000
const MOVING_MS = 100

export class VirtualAgent {
  readonly process: VirtualProcess
  readonly #node: VirtualNode
  readonly #kept: KeptByAgent
  readonly #clock: VirtualClock
  readonly #random: RandomStream
  readonly #send: SendReport
  readonly #tasks = new Map<string, AgentTask>()

  constructor(
    node: VirtualNode,
    kept: KeptByAgent,
    clock: VirtualClock,
    random: RandomStream,
    send: SendReport,
  ) {
    this.process = new VirtualProcess(clock)
    this.#node = node
    this.#kept = kept
    this.#clock = clock
    this.#random = random
    this.#send = send
    for (const uid of [...kept.out]) {
      if (node.containers.get(uid)?.residency === 'out') this.#task(uid).wantsGpu = false
      else kept.out.delete(uid)
    }
    for (const [uid, marks] of kept.marks) this.#task(uid).marks = marks
    void this.#report()
    void this.#sample()
  }

  async #report(): Promise<void> {
    const clock = this.process.newClock()
    for (;;) {
      const answer = await this.#send(this.#reportNow(), this.process)
      if (answer === null) await timePasses(clock, RETRY_MS)
      else this.#obey(answer)
    }
  }

  async #sample(): Promise<void> {
    const clock = this.process.newClock()
    for (;;) {
      for (const [uid, task] of this.#tasks) {
        const container = this.#node.containers.get(uid)
        if (container === undefined || container.residency === 'moving') continue
        // A request to a pod that is out is heard.
        if (container.residency === 'out') task.wantsGpu = container.isWakeable && container.isBusy
        else {
          // A kernel between two samples is seen.
          if (container.isBusy) task.lastUseAt = this.#clock.now()
          else if (this.#clock.now() - container.usedAt <= SAMPLE_EVERY_MS) task.lastUseAt = container.usedAt
          task.wantsGpu = this.#clock.now() - task.lastUseAt < IDLE_AFTER_MS
        }
      }
      await timePasses(clock, SAMPLE_EVERY_MS)
    }
  }

  #reportNow(): AgentReport {
    const at = this.#clock.now()
    const pods = [...this.#tasks].map(([pod, task]): PodReport => {
      const { residency = 'in', isWakeable = false } = this.#node.containers.get(pod) ?? {}
      return {
        ...{ pod, residency, order: task.order, outcome: task.outcome, why_not: null },
        ...{ wants_gpu: task.wantsGpu, idle_ms: Math.max(0, at - task.lastUseAt) },
        ...(residency === 'out' && isWakeable ? { wakeable: true } : {}),
        ...(task.marks.length === 0 ? {} : { marks: [...task.marks] }),
      }
    })
    const isMoving = pods.some(({ residency }) => residency === 'moving')
    const gpus = this.#node.gpus.map(({ uuid, mib }) => ({ uuid, model: 'X', vram_mib: mib, foreign_mib: 0 }))
    const head = { node: this.#node.name, host_swap_mib: 10_000_000, wait_ms: isMoving ? MOVING_MS : CALM_MS }
    const { rounds } = this.#kept
    return { ...head, gpus, pods, ...(rounds.length === 0 ? {} : { rounds: [...rounds] }) }
  }

  #obey({ pods }: AgentAnswer): void {
    const known = new Set(pods.map(({ pod }) => pod))
    for (const uid of [...this.#tasks.keys()]) if (!known.has(uid)) this.#leave(uid)
    for (const { pod, marks } of pods) if (marks !== undefined) this.#keepMarks(pod, marks)
    for (const { pod, order, wanted } of pods) {
      const task = this.#task(pod)
      const container = this.#node.containers.get(pod)
      if (order === 0 || order === task.order || container?.residency === 'moving') continue
      task.order = order
      task.outcome = null
      if (container === undefined) task.outcome = wanted === 'in' ? 'done' : 'copy_failed'
      else if (container.residency === wanted) task.outcome = 'done'
      else if (wanted === 'out' && task.wantsGpu) task.outcome = 'woke_while_locked'
      else this.#move(container, wanted, task)
    }
  }

  #keepMarks(uid: string, marks: readonly SwapMark[]): void {
    this.#task(uid).marks = marks
    this.#kept.marks.set(uid, marks)
    this.#kept.rounds = latestMarks([...this.#kept.rounds, ...marks])
  }

  /** The operator knows it no more: it has ended, or it must not stay stopped. */
  #leave(uid: string): void {
    const container = this.#node.containers.get(uid)
    const task = this.#task(uid)
    if (container?.residency === 'moving') return
    if (container?.residency === 'out') {
      if (this.#node.hasRoomFor(container)) this.#move(container, 'in', task)
      return
    }
    this.#tasks.delete(uid)
    this.#kept.marks.delete(uid)
    this.#kept.out.delete(uid)
  }

  #move(container: Container, wanted: 'in' | 'out', task: AgentTask): void {
    if (wanted === 'out') {
      this.#node.willSwapOut(container)
      this.#kept.out.add(container.uid)
    }
    this.#node.setResidency(container, 'moving')
    const ms = 200 + Math.floor(this.#random() * 3_000)
    const fails = this.#random() < 0.03
    const clock = this.process.newClock()
    clock.at(clock.now() + ms, () => {
      if (this.#node.containers.get(container.uid) !== container) {
        task.outcome = 'copy_failed'
        return
      }
      const isAwake = wanted === 'out' && container.isBusy
      task.outcome = isAwake ? 'woke_while_locked' : fails ? 'copy_failed' : 'done'
      const now = task.outcome === 'done' ? wanted : wanted === 'out' ? 'in' : 'out'
      this.#node.setResidency(container, now)
      if (now === 'in') this.#kept.out.delete(container.uid)
      if (now === 'in' && (wanted === 'in' || isAwake)) task.lastUseAt = this.#clock.now()
      if (isAwake) task.wantsGpu = true
    })
  }

  #task(uid: string): AgentTask {
    const known = this.#tasks.get(uid)
    if (known !== undefined) return known
    const made: AgentTask = {
      lastUseAt: this.#clock.now(),
      wantsGpu: true,
      order: 0,
      outcome: null,
      marks: [],
    }
    this.#tasks.set(uid, made)
    return made
  }
}

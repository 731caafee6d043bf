/** The agent of a virtual node: that of gpu-server/pods, over virtual processes and requests. */
import type { RandomStream } from '../../../../controller/ports/random.ts'
import { timePasses } from '../../../../controller/ports/clock.ts'
import { PodAgent, type PodRequests } from '../../../../gpu-server/pods/pod-agent.ts'
import type { PodTask } from '../../../../gpu-server/pods/pod-task.ts'
import type { AgentAnswer, AgentReport } from '../../../../protocol/agent-messages.ts'
import type { VirtualClock } from '../../../../simulator/kernel/virtual-clock.ts'
import { VirtualAccelerator } from './virtual-accelerator.ts'
import type { VirtualNode } from './virtual-node.ts'
import { VirtualProcess } from './virtual-process.ts'

/** Sends a report to an operator. Resolves with null if it gets no answer. */
export type SendReport = (report: AgentReport, from: VirtualProcess) => Promise<AgentAnswer | null>

export interface AgentParts {
  readonly node: VirtualNode
  readonly clock: VirtualClock
  readonly random: RandomStream
  readonly send: SendReport
  readonly stateFolder: string
}

/** As services/operator/agent.ts has them. */
const SAMPLE_EVERY_MS = 1_000
const RETRY_MS = 1_000
const IDLE_AFTER_MS = 5_000
const HOST_SWAP_MIB = 10_000_000

export class VirtualAgent {
  readonly process: VirtualProcess
  readonly requests: VirtualRequests
  readonly #parts: AgentParts
  #agent: PodAgent | null = null
  #isEnding = false
  /** Ends the wait for the answer: a request has arrived. */
  #outdated = Promise.withResolvers<'outdated'>()

  constructor(parts: AgentParts) {
    this.#parts = parts
    this.process = new VirtualProcess(parts.clock)
    this.requests = new VirtualRequests(parts.node, this.process)
    void this.#run()
  }

  /** Resolves when its swaps have ended. */
  async stop(): Promise<void> {
    this.#isEnding = true
    await this.#agent?.close()
  }

  async #run(): Promise<void> {
    const { node, random, stateFolder } = this.#parts
    const clock = this.process.newClock()
    const agent = await PodAgent.open({
      ...{ node: node.name, stateFolder, hostSwapMib: HOST_SWAP_MIB, idleAfterMs: IDLE_AFTER_MS },
      accelerator: new VirtualAccelerator(node, clock, random),
      cgroups: { processesOf: (ids) => pidsOf(node, ids), forget: () => {} },
      whyNot: () => null,
      now: () => node.now(),
      wait: (ms) => timePasses(clock, ms),
      onNote: () => {},
      watch: (onRequest) => this.requests.begin(onRequest),
      onRequest: () => this.#outdated.resolve('outdated'),
    })
    this.#agent = agent
    void this.#report(agent)
    while (!this.#isEnding) {
      await agent.sample()
      await timePasses(clock, SAMPLE_EVERY_MS)
    }
  }

  async #report(agent: PodAgent): Promise<void> {
    const clock = this.process.newClock()
    while (!this.#isEnding) {
      const { promise } = (this.#outdated = Promise.withResolvers())
      const answer = await Promise.race([this.#parts.send(agent.report(), this.process), promise])
      if (this.#isEnding) return
      if (answer === null) await timePasses(clock, RETRY_MS)
      else if (answer !== 'outdated') agent.obey(answer)
    }
  }
}

/** In place of the program that watches sockets. */
class VirtualRequests implements PodRequests {
  readonly #node: VirtualNode
  readonly #process: VirtualProcess
  readonly #watched = new Map<string, PodTask>()
  #onRequest: (task: PodTask) => void = () => {}

  constructor(node: VirtualNode, process: VirtualProcess) {
    this.#node = node
    this.#process = process
  }

  begin(onRequest: (task: PodTask) => void): this {
    this.#onRequest = onRequest
    return this
  }

  /** A pod is in use; one that is out does not hear it. */
  requested(uid: string): void {
    const task = this.#watched.get(uid)
    if (task !== undefined) this.#process.run(() => this.#onRequest(task))
  }

  watch(task: PodTask): Promise<boolean> {
    const pod = this.#node.pods.get(task.taskId)
    if (pod?.isListening !== true || !task.start.wakeOnRequest) return Promise.resolve(false)
    this.#watched.set(task.taskId, task)
    if (pod.isBusy) queueMicrotask(() => this.requested(task.taskId))
    return Promise.resolve(true)
  }

  hasRequest(): Promise<boolean> {
    return Promise.resolve(false)
  }

  forget(task: PodTask): void {
    if (this.#watched.get(task.taskId) === task) this.#watched.delete(task.taskId)
  }

  close(): void {
    this.#watched.clear()
  }
}

function pidsOf(node: VirtualNode, ids: readonly string[]): readonly number[] {
  return [...node.pods.values()].flatMap(({ containers }) =>
    containers.filter(({ isUp, id }) => isUp && ids.includes(id)).map(({ pid }) => pid),
  )
}

/** The fairness bound of swap-outs over operators that are restarted, each after one decision. */
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createSystemClock } from '../../../controller/adapters/system-clock.ts'
import { CLUSTER_GPU_POLICY } from '../../../operator/contract/policies.ts'
import { ownResource } from '../../../operator/ports/kube-api.ts'
import type { AgentAnswer, PodReport } from '../../../protocol/agent-messages.ts'
import { Pause } from '../../../simulator/kernel/pause.ts'
import { ProcessClock } from '../../../simulator/kernel/process-clock.ts'
import { FairnessTracker } from '../../../simulator/check/fairness-tracker.ts'
import { aClusterPolicy } from '../../support/kubernetes/objects.ts'
import { OperatorWorld } from '../../support/kubernetes/operator-world.ts'
import { WAIT } from '../../support/wait.ts'

const GIB = 1024
const RESTARTS = 20
const IDLE_MS = 3_600_000
/** Three fit at once. The bytes alone would choose the same two each time. */
const PODS = [6, 7, 8, 8]

let world: OperatorWorld
let agent: CountingAgent
/** A stopped operator answers nothing. */
const tooLate = () => delay(200, null)
beforeEach(() => {
  world = new OperatorWorld()
  agent = new CountingAgent()
})
afterEach(async () => {
  await agent.stop()
  await world.stop()
})

/** All pods are idle, except one that wants the GPU while it is out. It swaps at once, and keeps marks. */
class CountingAgent {
  readonly pods = new Map<string, PodReport>()
  readonly swapOuts: string[] = []
  readonly breaches: unknown[] = []
  wanting: string | null = null
  readonly #tracker = new FairnessTracker()
  #isStopped = false
  readonly #loop = this.#run()

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#loop
  }

  isOut(pod: string): boolean {
    return this.pods.get(pod)?.residency === 'out'
  }

  async #run(): Promise<void> {
    const gpus = [{ uuid: 'a-GPU-0', model: 'X', vram_mib: 24 * GIB, foreign_mib: 0 }]
    const head = { node: 'a', host_swap_mib: 64 * GIB, wait_ms: 20, gpus }
    for (; !this.#isStopped; await delay(5)) {
      const pods = [...this.pods.values()].map((pod) => {
        return { ...pod, wants_gpu: pod.pod === this.wanting && pod.residency === 'out' }
      })
      const answers = await Promise.all(
        world.operators.map((each) => Promise.race([each.agentReported({ ...head, pods }), tooLate()])),
      )
      for (const answer of answers) if (answer !== null) this.#obey(answer)
    }
  }

  #obey(answer: AgentAnswer): void {
    for (const { pod, order, wanted, marks } of answer.pods) {
      const known = this.pods.get(pod)
      if (known !== undefined && (order === 0 || known.order === order)) continue
      if (order !== 0 && wanted === 'out') this.#count(pod)
      this.pods.set(pod, {
        ...{ pod, residency: order === 0 ? 'in' : wanted, order, outcome: order === 0 ? null : 'done' },
        ...{ why_not: null, wants_gpu: false, idle_ms: IDLE_MS },
        ...(marks === undefined ? {} : { marks: [...marks] }),
      })
    }
  }

  #count(pod: string): void {
    const resident = [...this.pods.keys()].filter((each) => !this.isOut(each))
    this.swapOuts.push(pod)
    const breach = this.#tracker.decide({ victims: [pod], available: new Set(resident) })
    if (breach !== null) this.breaches.push(breach)
  }
}

async function prepare(): Promise<void> {
  await world.addNode('a')
  const policy = aClusterPolicy(100)
  const spec = { ...policy.spec, idleSwapOutSeconds: 1, safetyReserveMib: 0 }
  await world.api.create(ownResource(CLUSTER_GPU_POLICY), { ...policy, spec })
  for (const [index, gib] of PODS.entries()) await world.addPod(`pod-${index}`, `${gib}Gi`)
}

const decided = (count: number): Promise<void> =>
  vi.waitFor(() => {
    const { swapOuts, wanting } = agent
    const isBack = wanting === null ? agent.pods.size === PODS.length : !agent.isOut(wanting)
    if (swapOuts.length !== count || !isBack)
      throw new Error(`${swapOuts.length} of ${count} decisions: ${world.notes.join('\n')}`)
  }, WAIT)

it(`The fairness bound holds over ${RESTARTS} operators, each of which decides once`, async () => {
  const start = () => world.start({ probeSeconds: 86_400 })
  let operator = start()
  await prepare()
  for (let decisions = 1; decisions <= RESTARTS; decisions += 1) {
    await decided(decisions)
    agent.wanting = agent.swapOuts.at(-1) ?? null
    await operator.stop()
    operator = start()
  }
  expect(agent.breaches).toEqual([])
})

it('An operator that leads again repeats no order from before another one led', async () => {
  const pause = new Pause()
  const newClock = () => new ProcessClock(createSystemClock(), pause)
  const first = world.start({ probeSeconds: 86_400, newClock })
  await prepare()
  await decided(1)
  pause.begin()
  const second = world.start({ probeSeconds: 86_400 })
  await vi.waitFor(() => expect(second.isLeading).toBe(true), WAIT)
  agent.wanting = agent.swapOuts.at(-1) ?? null
  await decided(2)
  pause.end()
  await vi.waitFor(() => expect(first.isLeading).toBe(false), WAIT)
  agent.wanting = agent.swapOuts.at(-1) ?? null
  await second.stop()
  await vi.waitFor(() => expect(first.isLeading).toBe(true), WAIT)
  await decided(3)
  expect(agent.breaches).toEqual([])
})
